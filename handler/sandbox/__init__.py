"""The directories and kernel objects of one job, and the removal of a job's leftovers."""
