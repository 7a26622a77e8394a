"""Measurements that anyone can repeat: `soal bench …`."""
