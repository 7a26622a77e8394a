"""An invocation as stages: prepare → run → record. Each stage takes frozen values and returns one."""
