"""The errors of SafeWriter, from their own module; the rest of the Python API is autodoc's."""

from __future__ import annotations

import textwrap

from safewriter import errors as tree

__all__ = ["error_tree", "errors"]


def error_tree() -> str:
    """Return the tree that the module's docstring draws."""
    drawn = [line for line in str(tree.__doc__).splitlines() if line.startswith("    ")]
    return f"```text\n{textwrap.dedent(chr(10).join(drawn))}\n```"


def errors() -> str:
    """Return a directive for each exported error."""
    directives = "\n\n".join(f".. autoexception:: safewriter.{name}" for name in tree.__all__)
    return f"```{{eval-rst}}\n{directives}\n```"
