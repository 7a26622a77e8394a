"""The commands of `soal`, one file each."""
