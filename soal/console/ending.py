"""Run a command line: print a problem or a crash to stderr, and set the exit code."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from soal.console.problem import EXIT_FAILED, Problem
from soal.console.visible import VisibleFormatter, crash

if TYPE_CHECKING:
    from collections.abc import Callable


def run(command_line: Callable[[], object]) -> None:
    """Run `command_line`. If it raises, exit with the problem's exit code, or 1 for any other exception."""
    if logging.lastResort is not None:  # libraries log to this handler only
        logging.lastResort.setFormatter(VisibleFormatter())
    try:
        command_line()
    except Problem as problem:
        from soal.console.output import Output  # imports rich, which `--help` does not need

        Output(as_json=False).problem(problem)
        sys.exit(problem.exit_code)
    except Exception as error:  # noqa: BLE001 - the end of the command
        crash(error)
        sys.exit(EXIT_FAILED)
