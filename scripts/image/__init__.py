"""The container image: its parts, its build, its size and its tests."""
