"""The `soal` command line: data on stdout, all other text on stderr."""
