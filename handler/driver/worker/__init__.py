"""The first lines of the Python processes of functions: this folder stands on their import path."""
