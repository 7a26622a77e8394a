"""Faults of more than one write: each scenario is a test of the repository, and its result is a line."""
