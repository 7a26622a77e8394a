"""`soal doctor`: examines this machine, a script, or a deployed function; each finding has a remedy."""
