"""What the checkpoint bucket knows of runs and their writes."""
