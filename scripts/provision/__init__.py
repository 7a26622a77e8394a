"""Turn a fresh clone into a working tree: `.venv/` and `.soal/`. scripts/setup runs it before anything is installed.

Only the standard library is imported here.
"""
