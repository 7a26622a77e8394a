"""The output of a command: views on stdout, remarks, problems and progress on stderr."""
