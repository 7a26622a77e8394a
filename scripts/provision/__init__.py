"""From a fresh clone to a working tree: `.venv/` and `.soal/`. Run by scripts/setup, before anything is installed.

Only the standard library is imported here.
"""
