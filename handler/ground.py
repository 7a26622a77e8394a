"""Directories that belong to this function alone, brought back after each job to what they held before the first.

On Lambda /tmp outlives an invocation, and what a script leaves there beside its own directory would reach the next one.
On any other machine /tmp is shared. So a directory is taken for ours only if it is declared to be (the image does, and
the local emulator for a directory that it has made), and only while no other process of ours uses it.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from handler.removal import DIRECTORY, empty, tree_of
from safewriter.parsing import parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from handler.removal import Tree

__all__ = ["Ground", "claim_all", "clean_all"]

_RECORD: Final = ".soal-ground"
_ENTRIES_MAX: Final = 10_000
_RECORD_MAX_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Ground:
    """A directory that is ours: open, locked for the life of this process. `kept` was there before any job."""

    path: Path
    handle: int
    mode: int
    kept: Tree

    @classmethod
    def claim(cls, path: Path) -> Ground | None:
        """Take a directory; None if it is not there, in use by another process, or too full to have been ours alone.

        A process that follows one that was killed in the middle of a job takes over what that one had found.
        """
        try:
            handle = os.open(path, DIRECTORY)
        except OSError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            kept = _recorded(handle)
            if kept is None:
                kept = tree_of(handle, entries_max=_ENTRIES_MAX)
        except OSError:
            kept = None
        if kept is None:
            os.close(handle)
            return None
        ground = cls(path, handle, stat.S_IMODE(os.fstat(handle).st_mode), {**kept, _RECORD: None})
        ground._record()
        return ground

    def clean(self, may_go_on: Callable[[], bool]) -> int:
        """Remove what was not there before the first job; return how many entries could not be removed."""
        if stat.S_IMODE(os.fstat(self.handle).st_mode) != self.mode:
            with suppress(PermissionError):
                os.fchmod(self.handle, self.mode)
        stuck = empty(self.handle, keep=self.kept, may_go_on=may_go_on)
        self._record()
        return stuck

    def _record(self) -> None:
        """Leave for the next process what this one has found, whatever a job has made of it."""
        body = json.dumps(self.kept).encode()
        if _read(self.handle) == body:
            return
        with suppress(OSError):  # a full disk: then the next process keeps what it finds
            with suppress(FileNotFoundError):
                os.unlink(_RECORD, dir_fd=self.handle)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            record = os.open(_RECORD, flags, 0o600, dir_fd=self.handle)
            try:
                os.write(record, body)
            finally:
                os.close(record)


@cache
def claim_all(paths: tuple[Path, ...]) -> tuple[Ground, ...]:
    """Take those of the directories that can be taken, once in the life of this process: before its first job."""
    return tuple(ground for path in paths if (ground := Ground.claim(path)) is not None)


def clean_all(grounds: Iterable[Ground], may_go_on: Callable[[], bool]) -> Iterator[str]:
    """Clean the directories; say of each what could not be removed from it."""
    for ground in grounds:
        if stuck := ground.clean(may_go_on):
            yield f"{stuck} entries that a job has left in {ground.path} could not be removed"


def _recorded(handle: int) -> dict[str, Tree | None] | None:
    body = _read(handle)
    if body is None:
        return None
    try:
        found = parsed(body)
    except ValueError:
        return None
    return found if _is_tree(found) else None


def _read(handle: int) -> bytes | None:
    """Return the record, if there is one of our own."""
    try:
        record = os.open(_RECORD, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=handle)
    except OSError:
        return None
    try:
        found = os.fstat(record)
        is_ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_size <= _RECORD_MAX_BYTES
        return os.read(record, _RECORD_MAX_BYTES) if is_ours else None
    finally:
        os.close(record)


def _is_tree(found: object) -> bool:
    todo = [found]
    while todo:
        one = todo.pop()
        if not isinstance(one, dict):
            return False
        todo.extend(below for below in one.values() if below is not None)
    return True
