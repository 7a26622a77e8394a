"""Turn a fresh clone into a working tree: `.venv/` and `.soal/`. scripts/setup runs it before anything is installed.

It imports only the standard library.
"""
