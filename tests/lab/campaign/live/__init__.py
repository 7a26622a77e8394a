"""Real faults: every mutating request of a write, hit in every way."""
