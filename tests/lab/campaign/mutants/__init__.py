"""Named mutants: each takes one load-bearing rule out of the code, and a test has to notice it."""
