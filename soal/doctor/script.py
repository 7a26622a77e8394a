"""Findings about a script that was written for another runtime: read, never run.

A warning may be intended; a line that will fail is a failure.
"""

from __future__ import annotations

import ast
import json
import re
from typing import TYPE_CHECKING, Final

from handler.spark.missing_dependencies import SLIM, read_missing
from soal.doctor.finding import Finding
from soal.doctor.script_habits import habits_of
from soal.doctor.script_line import Line, fail
from soal.doctor.script_needs import needs_of
from soal.doctor.script_sinks import sinks_of
from soal.doctor.script_tree import nodes_of
from soal.tree import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from handler.spark.missing_dependencies import Variant

__all__ = ["examine_script"]

_TOO_DEEP: Final = re.compile(r"too many (?:nested parentheses|levels of indentation)")
"""Python's words in a `SyntaxError`."""


def examine_script(path: Path, variant: Variant = SLIM) -> Iterator[Finding]:
    """Yield the lines to change in a script for a variant of the image; `OSError` if it cannot be read."""
    text = path.read_bytes()
    try:
        lines = [_notebook()] if _is_notebook(text) else _examined(text, variant)
    except (RecursionError, MemoryError):  # ast and json raise either, by the kind of the nesting
        lines = [_too_deep(1)]
    lines = sorted(dict.fromkeys(lines), key=lambda line: line.number)
    if not lines:
        yield Finding(path.name, "ok", "there is nothing to change")
    yield from _verdict(path.name, lines)
    yield from (line.finding_in(path.name) for line in lines)


def _examined(text: bytes, variant: Variant) -> list[Line]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        number = getattr(error, "lineno", None) or 1
        if _TOO_DEEP.match(str(error)):
            return [_too_deep(number)]
        return [fail(number, f"this is not Python 3: {error}", "correct it")]
    nodes = tuple(nodes_of(tree))
    return [*needs_of(nodes, read_missing(MISSING, variant), variant), *habits_of(nodes), *sinks_of(nodes)]


def _too_deep(number: int) -> Line:
    return fail(number, "this is nested too deeply to be read", "split it: Python may not be able to run it, either")


def _is_notebook(text: bytes) -> bool:
    """Tell whether a file is a notebook: its JSON is a dictionary of Python's, too, which does nothing."""
    if not text.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return False
    try:
        return "nbformat" in json.loads(text)
    except ValueError:
        return False


def _notebook() -> Line:
    remedy = "export it as a script: jupyter nbconvert --to script"
    return fail(1, "this is a Jupyter notebook, not a script", remedy)


def _verdict(name: str, lines: Sequence[Line]) -> Iterator[Finding]:
    """Say which variant has all that the lines lack, as far as some variant has it."""
    asked = [set(line.variants) for line in lines if line.variants]
    if not asked:
        return
    if others := sorted(set.intersection(*asked)):
        detail = f"it needs the image's variant {' or '.join(others)}"
        remedy = f"soal image build --variant {others[0]}, and in the stack the context key image_variant={others[0]}"
    else:
        several = ", some in ".join(sorted(set[str]().union(*asked)))
        detail = f"no variant of the image has all that it needs: some of it is in {several}"
        remedy = "derive an image with the rest from one of them (image/derived)"
    yield Finding(name, "warn", detail, remedy)
