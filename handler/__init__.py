"""The Lambda side: an event becomes a job, the job a child process, its end a result.

Reading order: `app`, then `stages/` (prepare, run, finish), then the packages that a stage uses.
"""
