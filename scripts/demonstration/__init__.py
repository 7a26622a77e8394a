"""`scripts/demo`: three invocations of one job, and each claim about them checked."""
