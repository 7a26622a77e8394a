"""The records of runs, and the supervisor of their guarded writes."""
