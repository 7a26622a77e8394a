"""Crash states of recorded writes, put together in memory and settled by the real code."""
