"""The directories and kernel objects of one job, and how the handler removes what a job leaves."""
