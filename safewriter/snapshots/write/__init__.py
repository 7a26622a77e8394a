"""Build a snapshot from a DataFrame, and publish it."""
