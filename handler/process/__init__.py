"""The child process and its descendants, their output, and waiting with a timeout."""
