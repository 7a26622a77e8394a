"""Run a command to its end, within a bound, and turn its failure into an error with a remedy."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Final

from scripts.provision.report import SetupError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["run"]

_TAIL_LINES: Final = 20


def run(
    args: Sequence[str | Path], *, what: str, todo: str, timeout_s: float = 900, env: Mapping[str, str] | None = None
) -> str:
    """Run `args` and return its output (stdout and stderr as one).

    `what` names the act in the error, `todo` tells the reader what to do about it; `env` is added to the environment.
    Raises `SetupError` with the last lines of the output if the command is missing, fails or takes longer than
    `timeout_s`.
    """
    command = [str(arg) for arg in args]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout_s,
            env={**os.environ, **(env or {})},
            close_fds=False,  # the lock of set-up is inherited: if we are killed, the next run waits for this one
            check=False,
        )
    except OSError as error:
        raise SetupError(f"{what}: cannot run {command[0]}: {error.strerror}", todo=todo) from error
    except subprocess.TimeoutExpired as error:
        raise SetupError(f"{what}: not done after {timeout_s:g} s: {' '.join(command)}", todo=todo) from error
    if done.returncode != 0:
        tail = "\n".join(f"  | {line}" for line in done.stdout.splitlines()[-_TAIL_LINES:])
        raise SetupError(f"{what}: exit {done.returncode}: {' '.join(command)}\n{tail}", todo=todo)
    return done.stdout
