"""The guard inside the job: a block's opening, claim, watchdog and ending."""
