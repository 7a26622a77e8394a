"""`scripts/demo --account`: the stack in an account on this machine, its whole way, and each claim checked."""
