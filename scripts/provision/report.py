"""The messages and errors of set-up: what happened, where, what to do."""

from __future__ import annotations

import sys
from dataclasses import dataclass

__all__ = ["Found", "SetupError", "say"]


class SetupError(Exception):
    """Set-up cannot continue; the message says what happened and where, `todo` what the reader should do."""

    def __init__(self, message: str, *, todo: str) -> None:
        super().__init__(message)
        self.todo = todo

    def __str__(self) -> str:
        return f"{super().__str__()}\n  To do: {self.todo}"


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a step, in a few words, and whether it had to change anything."""

    what: str
    changed: bool = False


def say(line: str) -> None:
    """Print on stderr, so that the output of later programs stays clean."""
    sys.stderr.write(f"setup: {line}\n")  # at once: two parts of set-up may speak
    sys.stderr.flush()
