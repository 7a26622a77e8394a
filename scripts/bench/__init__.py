"""Measurements that anyone can run again: `soal bench …`."""
