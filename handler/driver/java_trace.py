"""Reduce the text of an exception from Java or a Python worker to one line: the exception, and the root cause if its
message adds something.

Such a text holds the whole stack trace, with the cause at its end. The job's log has the trace.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["in_one_line"]

_PART_MAX_LENGTH: Final = 1500
_CAUSED_BY: Final = "Caused by: "
# As java.lang.Throwable prints them: frames, and suppressed exceptions with their frames.
_INDENTED: Final = re.compile(r"\t+(at |\.\.\. \d+ |Suppressed: |Caused by: )")
# Py4J's prefix of a trace; and the lines of PySpark and Spark after which they repeat the same exception.
_CALL: Final = re.compile(r"An error occurred while calling \S+\.\n: ")
_AGAIN: Final = re.compile(r"^(?:JVM|Driver) stacktrace:$", re.MULTILINE)
_PYTHON_FRAMES: Final = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+")


def in_one_line(text: str) -> str:
    """Return one line without the stack trace of Java or a Python worker; return a text without a trace unchanged."""
    lines = text.splitlines()
    if not any(line.startswith("\tat ") for line in lines):
        return _cut(_flat(f"{text}\n")) if _PYTHON_FRAMES.search(text) else text
    first, *others = _blocks(lines)
    message = _flat(_AGAIN.split(_CALL.sub("", first), maxsplit=1)[0])
    causes = [_flat(block.removeprefix(_CAUSED_BY)) for block in others if block.startswith(_CAUSED_BY)]
    root = next((cause for cause in reversed(causes) if _message(cause) not in message), None)
    return _cut(message) if root is None else f"{_cut(message).rstrip(' :;.')}; root cause: {_cut(root)}"


def _blocks(lines: Iterable[str]) -> Iterator[str]:
    """Yield the texts between frames; the first is the exception itself."""
    block: list[str] = []
    for line in lines:
        if not _INDENTED.match(line):
            block.append(line)
        elif block:
            yield "\n".join([*block, ""])
            block = []
    yield "\n".join([*block, ""])


def _flat(block: str) -> str:
    return " ".join(_PYTHON_FRAMES.sub("", block).split())


def _message(cause: str) -> str:
    """Return a cause's text without its type; it may be empty."""
    return cause.partition(": ")[2] or cause


def _cut(text: str) -> str:
    """Truncate between words: the handler masks secrets later, and would not recognise half a secret."""
    return text if len(text) <= _PART_MAX_LENGTH else f"{text[:_PART_MAX_LENGTH].rpartition(' ')[0]}…"
