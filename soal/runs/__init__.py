"""The state of runs and their writes, from the checkpoint bucket."""
