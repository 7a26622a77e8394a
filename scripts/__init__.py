"""The operator's side: set-up, the `soal` command line, the emulator, sample jobs."""
