"""The lab: the evidence for SafeWriter, and its measurements. `scripts/lab` is its command."""
