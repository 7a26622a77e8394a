"""The fault campaign: every mutating request of a write, hit in every way, with and without the guard."""
