"""Helpers of set-up's steps: messages, commands with a timeout, parallel work, system packages."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from soal.console.problem import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a step, as a short text, and whether the step changed anything."""

    text: str
    changed: bool = False


def say(line: str) -> None:
    """Print a line to stderr, so that the output of later programs stays clean."""
    sys.stderr.write(f"setup: {line}\n")  # in one write: two threads may print
    sys.stderr.flush()


_TAIL_LINES: Final = 20


def run(
    args: Sequence[str | Path], *, act: str, todo: str, timeout_s: float = 900, env: Mapping[str, str] | None = None
) -> str:
    """Run `args` and return its output (stdout and stderr combined).

    `act` and `todo` are the action and the remedy in the error; `env` is added to the environment. Raises `Failure`
    with the last lines of the output if the command is missing, fails or takes longer than `timeout_s`.
    """
    command = [str(arg) for arg in args]
    try:
        process = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout_s,
            env={**os.environ, **(env or {})},
            close_fds=False,  # the command inherits set-up's lock: if set-up is killed, the next run waits for it
            check=False,
        )
    except OSError as error:
        raise Failure(f"{act}: cannot run {command[0]}: {error.strerror}", todo=todo) from error
    except subprocess.TimeoutExpired as error:
        raise Failure(f"{act}: not done after {timeout_s:g} s: {' '.join(command)}", todo=todo) from error
    if process.returncode != 0:
        tail = "\n".join(f"  | {line}" for line in process.stdout.splitlines()[-_TAIL_LINES:])
        raise Failure(f"{act}: exit {process.returncode}: {' '.join(command)}\n{tail}", todo=todo)
    return process.stdout


Here = TypeVar("Here")
Beside = TypeVar("Beside")


def side_by_side(here: Callable[[], Here], beside: Callable[[], Beside]) -> tuple[Here, Beside]:
    """Call `here` on this thread, which Ctrl-C interrupts, and `beside` on another thread; return both results.

    Both run to their end even if one fails, so that its work need not be repeated. Raises the exception of `here`, else
    that of `beside`; if both fail, prints the second one.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        future = pool.submit(beside)
        try:
            result = here()
        except Failure:
            if (second := future.exception()) is not None:
                say(f"failed: {second.told if isinstance(second, Failure) else second}")
            raise
    return result, future.result()
