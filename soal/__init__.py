"""The `soal` command line. It writes data to stdout and everything else to stderr."""
