"""The end of a command line: a problem, or a crash, on stderr, and the exit code."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from soal.console.problem import EXIT_FAILED, Problem
from soal.console.visible import VisibleFormatter, crash

if TYPE_CHECKING:
    from collections.abc import Callable


def run(command_line: Callable[[], object]) -> None:
    """Call it, and end the process if it raises: with a problem's own exit code, else as failed."""
    if logging.lastResort is not None:  # nobody else handles what libraries log
        logging.lastResort.setFormatter(VisibleFormatter())
    try:
        command_line()
    except Problem as problem:
        from soal.console.output import Output  # rich, which a command that only lists others does not need

        Output(as_json=False).problem(problem)
        sys.exit(problem.exit_code)
    except Exception as error:  # noqa: BLE001 - the end of the command
        crash(error)
        sys.exit(EXIT_FAILED)
