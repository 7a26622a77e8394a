"""The directories and kernel objects of a job, and the removal of its leftovers."""
