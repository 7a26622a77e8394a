"""The scripts by family: a function is a script, and its docstring says its mistake."""
