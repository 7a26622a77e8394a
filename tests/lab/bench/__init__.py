"""Measurements that anyone can repeat: `scripts/lab bench …`."""
