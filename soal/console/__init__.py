"""The output of a command: views go to stdout; remarks, problems and progress go to stderr."""
