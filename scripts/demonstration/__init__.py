"""`scripts/demo`: invoke one job three times, and check each claim about it."""
