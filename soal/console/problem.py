"""The exception of a command that cannot do its work: one sentence for the problem, one for the remedy."""

from __future__ import annotations

from typing import Final

# Copies from `safewriter.errors`, which takes longer to import than the command line; a test compares them.
EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_TRY_AGAIN: Final = 75
EXIT_DEADLINE: Final = 124


class Problem(Exception):  # noqa: N818 - a message for the user, not a program error
    """The command cannot do its work. `exit_code` is 2 if the user must change the call."""

    def __init__(self, problem: str, *, todo: str, exit_code: int = EXIT_USAGE) -> None:
        super().__init__(problem)
        self.todo = todo
        self.exit_code = exit_code

    @property
    def told(self) -> str:
        """The sentence and its remedy, for a program that has no `Output`."""
        return f"{self}\n  To do: {self.todo}"


class Failure(Problem):
    """The command cannot do its work, though its call is right: exit code 1."""

    def __init__(self, problem: str, *, todo: str) -> None:
        super().__init__(problem, todo=todo, exit_code=EXIT_FAILED)
