"""The folders of tasks on an executor's disk. A task that is killed leaves its own, and the next task removes it.

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

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["task_folder"]

_PREFIX: Final = "task-"


@contextmanager
def task_folder(root: Path) -> Iterator[Path]:
    """Make a folder for a task, and remove it afterwards; remove first those whose tasks are dead."""
    root.mkdir(parents=True, exist_ok=True)
    with _locked(root):  # no folder is without its lock when another task looks
        for found in root.glob(f"{_PREFIX}*"):
            _remove_if_dead(found)
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
        lock = _locked(folder)
        lock.__enter__()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.__exit__(None, None, None)


def _remove_if_dead(folder: Path) -> None:
    try:
        with _locked(folder, fcntl.LOCK_NB):
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # its task is alive, or has just removed it
        return


@contextmanager
def _locked(folder: Path, more: int = 0) -> Iterator[None]:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | more)
        yield
    finally:
        os.close(fd)
