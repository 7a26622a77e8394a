"""The folders of tasks on an executor's disk. A killed task leaves its folder, and the next task removes it.

A task holds a lock on its folder, which ends with its process.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from safewriter.snapshots.errors import ConfigValidationError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["task_folder"]

_PREFIX: Final = "task-"


@contextmanager
def task_folder(local_root: str) -> Iterator[Path]:
    """Make a folder for a task, and remove it afterwards. First remove the folders of dead tasks.

    `local_root`: the parent directory; empty for a directory per user in the machine's temporary directory. Raises
    `ConfigValidationError` if the folder cannot be made.
    """
    # A directory per user, since users cannot write into each other's.
    root = Path(local_root or Path(tempfile.gettempdir(), f"soal-snapshots-{os.getuid()}"))
    try:
        folder, fd = _make(root)
    except OSError as error:
        raise ConfigValidationError(f"a task cannot make a folder in local_root: {error}") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(fd)


def _make(root: Path) -> tuple[Path, int]:
    """Make a folder, and lock it; return it and the file descriptor that holds the lock."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(root):  # so that another task never sees a folder that is not locked yet
        for old in root.glob(f"{_PREFIX}*"):
            _remove_if_dead(old)
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
        fd = _open(folder)
        fcntl.flock(fd, fcntl.LOCK_EX)
    return folder, fd


def _remove_if_dead(folder: Path) -> None:
    try:
        with _locked(folder, fcntl.LOCK_NB):
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # its task is alive, or has just removed the folder
        return


@contextmanager
def _locked(folder: Path, more: int = 0) -> Iterator[None]:
    fd = _open(folder)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | more)
        yield
    finally:
        os.close(fd)


def _open(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
