"""The commands of `soal`, a file for each."""
