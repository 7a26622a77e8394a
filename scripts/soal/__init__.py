"""The `soal` command line: data on stdout, talk on stderr."""
