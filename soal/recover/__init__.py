"""Settling by hand, and its dry run."""
