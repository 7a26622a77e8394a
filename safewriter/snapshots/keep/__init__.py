"""Maintain the snapshots of a prefix: history, rollback, clean-up."""
