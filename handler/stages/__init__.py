"""An invocation as stages: prepare → run → finish. Each stage puts its frozen values into `Progress` once."""
