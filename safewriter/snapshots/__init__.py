"""Snapshots: a DataFrame as sharded key-value files, published whole or not at all."""
