"""An operator's view of the locks of jobs that take turns."""
