"""The fault campaign: every mutating request of a write, hit in every way, with the guard and without it."""
