"""The lock services: each an adapter of `Backend`, imported when a lock needs it."""
