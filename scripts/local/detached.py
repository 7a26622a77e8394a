"""A process in the background: it tells by a state file that it serves, and is ended with all its processes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from typing import TYPE_CHECKING, Final, TypeVar

import psutil

from soal.console.problem import EXIT_FAILED, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from soal.home import Home

_T = TypeVar("_T")
_LOG_TAIL_LINES: Final = 5


def start(
    command: Sequence[str], log: Path, served_by: Callable[[int], _T | None], *, what: str, todo: str, timeout_s: float
) -> _T:
    """Start a process that stays; return what `served_by` says of its id, as soon as that is something.

    Raises `Problem` with the last lines of its log if it ends before, or takes longer.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    pid = _detached(command, log)
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        found = served_by(pid)
        if found is not None:
            return found
        if os.waitpid(pid, os.WNOHANG)[0]:
            break
        time.sleep(0.02)
    else:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    tail = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-_LOG_TAIL_LINES:]
    raise Problem("\n".join([f"{what} did not start", *tail]), todo=f"see {log}; {todo}", exit_code=EXIT_FAILED)


def end(process: psutil.Process, *, timeout_s: float) -> None:
    """Let it end in order, or end it with all its processes."""
    with contextlib.suppress(psutil.NoSuchProcess):
        below = process.children(recursive=True)
        process.terminate()
        if not _ends(process, timeout_s):
            for one in (process, *below):
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.kill()
                    _ends(one, timeout_s)


@contextlib.contextmanager
def alone(home: Home) -> Iterator[None]:
    """Hold the lock by which two commands start or end something one after the other."""
    home.path.mkdir(parents=True, exist_ok=True)
    with home.lock.open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _ends(process: psutil.Process, timeout_s: float) -> bool:
    """Wait for the end of a process that is no child of ours: its new parent may never collect it, and a zombie has
    ended, too.
    """
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def _detached(command: Sequence[str], log: Path) -> int:
    """Start a process that stays when we end, and return its id; a Popen would complain that it still runs."""
    null, to_log = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [null, (os.POSIX_SPAWN_OPEN, 1, log, to_log, 0o644), (os.POSIX_SPAWN_DUP2, 1, 2)]
    return os.posix_spawn(command[0], list(command), os.environ, file_actions=actions, setsid=True)
