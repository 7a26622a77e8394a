"""The scripts by family: each function is a script, and its docstring describes its mistake."""
