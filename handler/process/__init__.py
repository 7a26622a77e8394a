"""The child process and all that descends from it, its output, and bounded waiting."""
