"""`soal doctor`: looks at this machine, a script, or a deployed function; each finding with what to do about it."""
