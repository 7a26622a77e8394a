"""The errors of SafeWriter, from their own module; the rest of the Python API is autodoc's."""

from __future__ import annotations

import textwrap

import safewriter
from safewriter import errors as tree

__all__ = ["error_tree", "errors"]


def error_tree() -> str:
    """Return the tree that the module's docstring draws."""
    drawn = [line for line in str(tree.__doc__).splitlines() if line.startswith("    ")]
    return f"```text\n{textwrap.dedent(chr(10).join(drawn))}\n```"


def errors() -> str:
    """Return a directive for each exported error."""
    names = (name for name in safewriter.__all__ if name.endswith("Error"))
    directives = "\n\n".join(f".. autoexception:: safewriter.{name}" for name in names)
    return f"```{{eval-rst}}\n{directives}\n```"
