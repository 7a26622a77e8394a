"""The embedded S3 (and Iceberg catalog) as a background process, found by its state file."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Final

import psutil

from soal.console.problem import EXIT_FAILED, Problem
from soal.local.state import running

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from soal.home import Home
    from soal.local.state import LocalS3

_START_TIMEOUT_S: Final = 60.0
_END_TIMEOUT_S: Final = 10.0
_LOG_TAIL_LINES: Final = 5


def ensure_up(home: Home, *, port: int, buckets: Sequence[str], iceberg: bool = False) -> tuple[LocalS3, bool]:
    """Start the local S3 if none runs; return it, and whether this call started it.

    Raises `Problem` if it cannot be started, or runs with other options.
    """
    with _alone(home):
        state = running(home)
        if state is None:
            return _start(home, port=port, buckets=buckets, iceberg=iceberg), True
    if port and not state.endpoint.endswith(f":{port}"):
        raise Problem(f"a local S3 runs already, at {state.endpoint}", todo="end it with: soal local down")
    missing = sorted(set(buckets) - set(state.buckets))
    if missing:
        raise Problem(
            f"the local S3 that runs was started without the bucket {missing[0]}", todo="end it with: soal local down"
        )
    if iceberg and state.catalog is None:
        raise Problem(
            "the local S3 that runs was started without an Iceberg catalog", todo="end it with: soal local down"
        )
    return state, False


def ensure_down(home: Home) -> LocalS3 | None:
    """Stop the local S3 with all its processes; return its state, or None if it did not run."""
    with _alone(home):
        state = running(home)
        process = None if state is None else state.process()
        if process is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                below = process.children(recursive=True)
                process.terminate()
                if not _ends(process):
                    _kill(process, *below)
        home.state.unlink(missing_ok=True)
        return state


def _kill(*processes: psutil.Process) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
            _ends(process)


def _ends(process: psutil.Process) -> bool:
    """Wait for a process that is not our child to end; return whether it did. A zombie counts, too: its parent may
    never reap it.
    """
    until = time.monotonic() + _END_TIMEOUT_S
    while time.monotonic() < until:
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def _start(home: Home, *, port: int, buckets: Sequence[str], iceberg: bool) -> LocalS3:
    home.state.unlink(missing_ok=True)
    home.log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-P", "-m", "scripts.local.server", "--state", str(home.state), "--port", str(port)]
    command += [word for bucket in buckets for word in ("--bucket", bucket)]
    command += ["--iceberg"] if iceberg else []
    pid = _detached(command, home.log)
    until = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < until:
        state = running(home)
        if state is not None and state.pid == pid:
            return state
        if os.waitpid(pid, os.WNOHANG)[0]:
            break
        time.sleep(0.02)
    else:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    tail = home.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-_LOG_TAIL_LINES:]
    raise Problem(
        "\n".join(["the local S3 did not start", *tail]),
        todo=f"see {home.log}; if the port is taken, leave --port out",
        exit_code=EXIT_FAILED,
    )


def _detached(command: Sequence[str], log: Path) -> int:
    """Start a process that outlives us; return its id, not a Popen, which would warn that the process still runs."""
    null, to_log = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [null, (os.POSIX_SPAWN_OPEN, 1, log, to_log, 0o644), (os.POSIX_SPAWN_DUP2, 1, 2)]
    return os.posix_spawn(command[0], list(command), os.environ, file_actions=actions, setsid=True)


@contextlib.contextmanager
def _alone(home: Home) -> Iterator[None]:
    """Hold the lock that serialises commands which start or stop the S3."""
    home.path.mkdir(parents=True, exist_ok=True)
    with home.lock.open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
