"""Start and end a process in the background. Its state file says that it serves; it ends with all its processes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Final, TypeVar

import psutil

from soal.console.problem import Failure
from soal.local.state import Background

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from soal.home import Home

_State = TypeVar("_State", bound=Background)
_LOG_TAIL_LINES: Final = 5


def start(
    kind: type[_State], path: Path, log: Path, words: Sequence[str], *, name: str, todo: str, timeout_s: float
) -> tuple[_State, bool]:
    """Return the process of a state file, and whether this call started it: scripts/local/server.py, with `words`.

    Raises `Failure` with the last lines of its log if it ends before it serves, or takes longer.
    """
    if (state := kind.running(path)) is not None:
        return state, False
    path.unlink(missing_ok=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    pid = _detached([sys.executable, "-P", "-m", "scripts.local.server", "--state", str(path), *words], log)
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        state = kind.running(path)
        if state is not None and state.pid == pid:
            return state, True
        if os.waitpid(pid, os.WNOHANG)[0]:
            break
        time.sleep(0.02)
    else:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    tail = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-_LOG_TAIL_LINES:]
    raise Failure("\n".join([f"{name} did not start", *tail]), todo=f"see {log}; {todo}")


def end(state: Background | None, *, timeout_s: float) -> None:
    """End the process in order, or after the timeout kill it with all its processes; do nothing if it has ended."""
    process = None if state is None else state.process()
    if process is None:
        return
    with contextlib.suppress(psutil.NoSuchProcess):
        below = process.children(recursive=True)
        process.terminate()
        if not _ends(process, timeout_s):
            for victim in (process, *below):
                with contextlib.suppress(psutil.NoSuchProcess):
                    victim.kill()
                    _ends(victim, timeout_s)


@contextlib.contextmanager
def alone(home: Home) -> Iterator[None]:
    """Hold the lock that serialises commands which start or end a process in the background."""
    home.path.mkdir(parents=True, exist_ok=True)
    with home.lock.open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _ends(process: psutil.Process, timeout_s: float) -> bool:
    """Wait for a process that is not our child to end; return whether it did. A zombie counts, too: its parent may
    never reap it.
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
    """Start a process that outlives us; return its id, not a Popen, which would warn that the process still runs."""
    null, to_log = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [null, (os.POSIX_SPAWN_OPEN, 1, log, to_log, 0o644), (os.POSIX_SPAWN_DUP2, 1, 2)]
    return os.posix_spawn(command[0], list(command), os.environ, file_actions=actions, setsid=True)
