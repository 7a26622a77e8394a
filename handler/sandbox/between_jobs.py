"""Directories that belong to this function alone: restore them after each job to their state before the first job.

On Lambda /tmp outlives an invocation, and files that a script leaves there would reach the next one. On any other
machine /tmp is shared. So a directory belongs to the function only if it is declared so (by the image, or by the local
emulator for a directory that it has made), and only while no other process of SoAL uses it.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from handler.sandbox import keyrings, shared_memory
from handler.sandbox.removal import DIRECTORY, empty, tree_of
from handler.sandbox.sandbox import LASTING
from safewriter.parsing import parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from handler.sandbox.removal import Tree

__all__ = ["OwnedDirectory", "clean_all"]

_RECORD: Final = ".soal-ground"
_ENTRIES_MAX: Final = 10_000
_DEPTH_MAX: Final = 50
_RECORD_MAX_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class OwnedDirectory:
    """A directory of this function, open and locked for the life of this process. `entries`, `shared` and `keys`
    existed before the first job.
    """

    path: Path
    handle: int
    mode: int
    entries: Tree
    shared: frozenset[shared_memory.Shared]
    keys: frozenset[keyrings.Key]

    @classmethod
    def claim(cls, path: Path) -> OwnedDirectory:
        """Claim a directory. Raises `OSError` if it does not exist, another process uses it, it is too full to belong
        to the function alone, or it holds this code.

        If an earlier process was killed during a job, this process takes over its record.
        """
        if Path(__file__).resolve().is_relative_to(path.resolve()):
            raise PermissionError(f"{path} holds the handler itself")  # a mistake: / or a home is no scratch space
        handle = os.open(path, DIRECTORY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            before = _read_record(handle)
            if before is None:
                tree = tree_of(handle, entries_max=_ENTRIES_MAX, depth_max=_DEPTH_MAX)
                if tree is None:
                    raise OSError(f"{path} holds more than {_ENTRIES_MAX} entries")  # noqa: TRY301 - closes the handle
                before = {**tree, _RECORD: None}, shared_memory.present(), keyrings.present()
            ground = cls(path, handle, stat.S_IMODE(os.fstat(handle).st_mode), *before)
            ground._record()
        except BaseException:
            os.close(handle)  # otherwise its lock would block every later claim of this process
            raise
        return ground

    def clean(self, may_go_on: Callable[[], bool], sandbox: Path | None = None) -> int:
        """Remove all entries that did not exist before the first job, except those that a `sandbox` keeps; return how
        many could not be removed. Raises `TimeoutError` if `may_go_on` returns False before the end.
        """
        if stat.S_IMODE(os.fstat(self.handle).st_mode) != self.mode:
            with suppress(PermissionError):
                os.fchmod(self.handle, self.mode)
        shared_memory.remove_all_but(self.shared)
        stuck = empty(self.handle, keep=self._entries_with(sandbox), may_go_on=may_go_on)
        self._record()
        stuck += keyrings.remove_all_but(self.keys)
        if not may_go_on():
            raise TimeoutError("there was no time left, so the next job may find files of this one")
        return stuck

    def _entries_with(self, sandbox: Path | None) -> Tree:
        if sandbox is None or not sandbox.is_relative_to(self.path):
            return self.entries
        tree: Tree = LASTING
        for name in reversed(sandbox.relative_to(self.path).parts):
            tree = {name: tree}
        return _merged(self.entries, tree)

    def _record(self) -> None:
        """Record this process's first lists for the next process; restore the record if a job has changed it."""
        lists = {"entries": self.entries, "shared": sorted(self.shared), "keys": sorted(self.keys), "boot": _boot()}
        body = json.dumps(lists).encode()
        if _read(self.handle) == body:
            return
        with suppress(OSError):  # a full disk: the next process then keeps everything that it finds
            with suppress(FileNotFoundError):
                os.unlink(_RECORD, dir_fd=self.handle)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            record = os.open(_RECORD, flags, 0o600, dir_fd=self.handle)
            try:
                os.write(record, body)
            finally:
                os.close(record)


def _merged(tree: Tree, other: Tree) -> Tree:
    both = {name: _merged(tree[name] or {}, other[name] or {}) for name in tree.keys() & other.keys()}
    return {**tree, **other, **both}


_claim = cache(OwnedDirectory.claim)  # once in this process; a failed claim is retried


def clean_all(paths: Iterable[Path], may_go_on: Callable[[], bool], sandbox: Path | None = None) -> Iterator[str]:
    """Clean the directories except the `sandbox` of the idle JVM; yield a sentence for each that could not be cleaned.
    A missing directory is skipped.
    """
    for path in paths:
        try:
            stuck = _claim(path).clean(may_go_on, sandbox)
        except FileNotFoundError:
            continue
        except OSError as error:
            yield f"{path} is not cleaned between jobs: {error}"
        else:
            if stuck:
                yield f"{stuck} entries that a job has left in {path} could not be removed"


def _read_record(handle: int) -> tuple[Tree, frozenset[shared_memory.Shared], frozenset[keyrings.Key]] | None:
    """Return an earlier process's lists of entries, shared objects and keys; None without a record of this boot, since
    the kernel's numbers start again at boot.
    """
    body = _read(handle)
    if body is None:
        return None
    try:
        record = parsed(body)
        if record["boot"] != _boot() or not _is_tree(record["entries"]):
            return None
        shared = frozenset((str(kind), int(number)) for kind, number in record["shared"])
        keys = frozenset((int(ring), int(number)) for ring, number in record["keys"])
    except (ValueError, TypeError, KeyError, OverflowError):
        return None
    return {**record["entries"], _RECORD: None}, shared, keys


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _read(handle: int) -> bytes | None:
    """Return the record; None unless it is a regular file of this user."""
    try:
        record = os.open(_RECORD, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=handle)
    except OSError:
        return None
    try:
        status = os.fstat(record)
        is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and status.st_size <= _RECORD_MAX_BYTES
        return os.read(record, _RECORD_MAX_BYTES) if is_ours else None
    finally:
        os.close(record)


def _is_tree(value: object) -> bool:
    todo = [(value, 0)]
    while todo:
        tree, depth = todo.pop()
        if not isinstance(tree, dict) or depth > _DEPTH_MAX:
            return False
        todo.extend((below, depth + 1) for below in tree.values() if below is not None)
    return True
