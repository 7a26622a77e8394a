"""`soal doctor` in a clone: examines this machine."""
