"""Named mutants: each removes one load-bearing rule from the code, and a test must fail."""
