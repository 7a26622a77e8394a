"""The end of a command that cannot do its work: one sentence names the problem, one the remedy."""

from __future__ import annotations

from typing import Final

# Those of `safewriter.errors`, which takes longer to import than the command line: a test compares the two.
EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_TRY_AGAIN: Final = 75
EXIT_DEADLINE: Final = 124


class Problem(Exception):  # noqa: N818 - it is the user's problem, in the user's words
    """The command cannot do its work. `exit_code` is 2 if the call must be changed."""

    def __init__(self, problem: str, *, todo: str, exit_code: int = EXIT_USAGE) -> None:
        super().__init__(problem)
        self.todo = todo
        self.exit_code = exit_code
