"""The command line, as typer describes its own commands."""

from __future__ import annotations

import re
from typing import Final

import typer
import typer.cli
import typer.main

from soal.app import app_of

__all__ = ["commands"]

# Each command has a section of its own; typer's lists cut the summaries short.
_LISTS: Final = re.compile(r"^\*\*Commands\*\*:\n\n(?:\* .*\n)+\n", re.MULTILINE)
_HELP: Final = re.compile(r"^\* `(?:-h, )?--help`: .*\n", re.MULTILINE)
_EMPTY: Final = re.compile(r"^\*\*Options\*\*:\n\n(?!\* )", re.MULTILINE)


def commands() -> str:
    """Return a section for each command: usage, arguments, options."""
    command = typer.main.get_command(app_of())
    text = typer.cli.get_docs_for_click(obj=command, ctx=typer.Context(command, info_name="soal"), name="soal")
    _program, _, sections = text.partition("\n## ")
    return _EMPTY.sub("", _HELP.sub("", _LISTS.sub("", f"## {sections}")))
