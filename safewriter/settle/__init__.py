"""Settle the writes that their jobs left open: recovery, supervisor, sweeper, operator."""
