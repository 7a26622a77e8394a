"""An invocation as stages: prepare → run → finish. Each takes what the one before returns."""
