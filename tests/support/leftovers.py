"""Run a command and ensure that no process or file of it stays: `python tests/support/leftovers.py COMMAND ...`.

A process that outlives a test run holds a port, a lock or gigabytes, and spoils the next run. This process adopts the
command's orphans, detached or not, so it can name them, kill them, and count them as a failure. Temporary files are in
a directory that is deleted at the end: a killed JVM leaves some.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Final

import psutil

from handler.process.tree import become_subreaper

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

__all__ = ["main"]

# A process may need a moment to exit; a JVM runs its shutdown hooks.
_GRACE_S: Final = 5.0


def main(command: Sequence[str]) -> int:
    """Return the command's exit code (128 + n for signal n), or 1 if it left processes behind, which are killed."""
    with tempfile.TemporaryDirectory(prefix="soal-run-", ignore_cleanup_errors=True) as place:
        return _run(command, place)


def _run(command: Sequence[str], place: str) -> int:
    become_subreaper()
    child = subprocess.Popen(command, env={**os.environ, "TMPDIR": place})

    def forward(signum: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(signum)

    signal.signal(signal.SIGTERM, forward)
    # The terminal sends Ctrl-C to the whole group: the child decides how to react.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    code = child.wait()
    left = _still_there()
    for process in left:
        with contextlib.suppress(psutil.Error):
            sys.stderr.write(f"left behind: {process.pid} {' '.join(process.cmdline())[:200]}\n")
            process.kill()
    _still_there()
    if code == 0 and left:
        return 1
    return code if code >= 0 else 128 - code


def _still_there() -> list[psutil.Process]:
    """Wait, bounded, until there is no descendant; return the remaining ones."""
    until = time.monotonic() + _GRACE_S
    while True:
        _reap()
        left = psutil.Process().children(recursive=True)
        if not left or time.monotonic() > until:
            return left
        time.sleep(0.05)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
