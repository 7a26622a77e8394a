"""The stages of an invocation: prepare → run → finish. Each takes the value that the previous one returns."""
