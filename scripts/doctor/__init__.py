"""`soal doctor` in a clone: examine this machine."""
