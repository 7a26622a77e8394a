"""The start-up code of Python workers: this folder is on their import path."""
