"""`soal doctor`: examine this machine, a script, or a deployed function, and name a remedy for each problem."""
