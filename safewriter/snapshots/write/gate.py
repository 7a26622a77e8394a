"""A gate on one machine, through which the tasks of a build upload: once it is shut, no task uploads any more.

Spark does not wait for the Python process of a task that it kills. That process still gets what is left in its socket,
takes the end for that of its rows, and would upload what it has. So each task holds a shared lock on a file of the
driver's, and looks before each upload whether the driver has removed the file.
"""

from __future__ import annotations

import fcntl
import os
import time
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from safewriter.snapshots.write.folders import task_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["Gate", "entered", "gate"]

_POLL_S: Final = 0.02


class Gate:
    """The driver's side. `path`: for `entered`, on this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        weakref.finalize(self, os.close, self._fd)  # a clean-up in the background asks behind the end of the build

    def shut(self) -> None:
        """Let no task begin an upload any more."""
        self.path.unlink(missing_ok=True)

    def wait_until_empty(self, patience_s: float) -> bool:
        """Wait until no task is inside of the shut gate; return False if `patience_s` passed first."""
        until_s = time.monotonic() + patience_s
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= until_s:
                    return False
                time.sleep(_POLL_S)
            else:
                fcntl.flock(self._fd, fcntl.LOCK_UN)  # a task that has opened the file before must see that it is gone
                return True


@contextmanager
def gate(local_root: str) -> Iterator[Gate]:
    """Open a gate in a folder of its own, as of `task_folder`, whose errors it raises. At the end no task may enter."""
    with task_folder(local_root) as folder:
        yield Gate(folder / "gate")


@contextmanager
def entered(path: str | None) -> Iterator[Callable[[], None]]:
    """Enter, as a task; yield a check that raises `RuntimeError` once the gate is shut, as entering does.

    `path`: None if there is no gate.
    """
    if path is None:
        yield lambda: None
        return
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise _over() from None

    def check() -> None:
        if os.fstat(fd).st_nlink == 0:
            raise _over()

    try:
        fcntl.flock(fd, fcntl.LOCK_SH)
        check()
        yield check
    finally:
        os.close(fd)


def _over() -> RuntimeError:
    return RuntimeError("the build is over, so nothing more is uploaded")
