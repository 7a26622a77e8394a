"""Run a command line: print a problem or a crash to stderr, and set the exit code."""

from __future__ import annotations

import json
import logging
import sys
from typing import TYPE_CHECKING, NoReturn

from soal.console.problem import EXIT_FAILED, Problem
from soal.console.visible import VisibleFormatter, crash, json_visible

if TYPE_CHECKING:
    from collections.abc import Callable


def run(command_line: Callable[[], object]) -> None:
    """Run `command_line`. If it raises, exit with the problem's exit code, or 1 for any other exception."""
    if logging.lastResort is not None:  # libraries log to this handler only
        logging.lastResort.setFormatter(VisibleFormatter())
    try:
        command_line()
    except Problem as problem:
        _end(problem)
    except Exception as error:  # noqa: BLE001 - the end of the command
        if "botocore" in sys.modules:
            from soal.remote.failure import AWS_ERRORS, failed

            if isinstance(error, AWS_ERRORS):
                _end(failed(str(error), error, "allow the caller this request, or correct the name"))
        crash(error)
        sys.exit(EXIT_FAILED)


def _end(problem: Problem) -> NoReturn:
    """Print a problem to stderr, and with --json to stdout, too: a program that reads JSON finds the reason there."""
    from soal.console.output import Output  # imports rich, which `--help` does not need

    Output(as_json=False).problem(problem)
    if "--json" in sys.argv:
        document = {"problem": str(problem), "todo": problem.todo, "exitCode": problem.exit_code}
        sys.stdout.write(json_visible(json.dumps(document, ensure_ascii=False)) + "\n")
    sys.exit(problem.exit_code)
