"""Remove the files that a job has left, through descriptors, so that no link is ever followed.

Each directory is emptied of files; its subdirectories are moved up and emptied there. So deep trees need neither a
stack nor many descriptors nor long paths, and no mount is entered, since the kernel refuses to move one.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from safewriter.entropy import unique_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    Tree: TypeAlias = Mapping[str, "Tree | None"]
    """Names in a directory: None for an entry that is no directory."""

__all__ = ["DIRECTORY", "empty", "tree_of"]

DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def tree_of(handle: int, *, entries_max: int, depth_max: int) -> dict[str, Tree | None] | None:
    """Return the entries of an open directory, down to `depth_max` directories below it; None if there are more than
    `entries_max`.
    """
    root: dict[str, Tree | None] = {}
    todo: list[tuple[dict[str, Tree | None], int, int]] = [(root, os.dup(handle), 0)]
    entries_left = entries_max
    try:
        while todo:
            tree, directory, depth = todo.pop()
            try:
                with os.scandir(directory) as entries:
                    for entry in entries:
                        entries_left -= 1
                        if entries_left < 0:
                            return None
                        tree[entry.name] = None
                        if entry.is_dir(follow_symlinks=False) and depth < depth_max:
                            tree[entry.name] = below = dict[str, "Tree | None"]()
                            with suppress(OSError):  # another user's: this process could not remove anything in it
                                todo.append((below, _enter(directory, entry.name), depth + 1))
            finally:
                os.close(directory)
    finally:
        for _, directory, _ in todo:
            os.close(directory)
    return root


def empty(handle: int, *, keep: Tree | None = None, may_go_on: Callable[[], bool] = lambda: True) -> int:
    """Remove all entries of an open directory except `keep`; return how many could not be removed.

    Stop as soon as `may_go_on` returns False, which counts as one more. Restore the owner's permissions on directories
    that lack them. An entry that still cannot be removed (an immutable file, a mount, another user's) is tried once.
    """
    emptying = _Emptying(handle, may_go_on)
    emptying.strip(handle, keep or {})
    emptying.remove_directories()
    return emptying.stuck + emptying.is_stopped


class _Emptying:
    """Empties the directory `top`, to which directories below it are moved up."""

    def __init__(self, top: int, may_go_on: Callable[[], bool]) -> None:
        self._top = top
        self._ask = may_go_on
        self.is_stopped = False
        self._prefix = f".soal-{unique_id()}-"
        self._number = 0
        self._todo: deque[str] = deque()
        self.stuck = 0

    def _may_go_on(self) -> bool:
        self.is_stopped = self.is_stopped or not self._ask()
        return not self.is_stopped

    def strip(self, directory: int, keep: Tree) -> None:
        """Remove the files, and move the directories up."""
        tried: set[str] = set()
        finds = True
        while finds:  # a listing may skip entries while others are removed
            finds = False
            with os.scandir(directory) as entries:
                for entry in entries:
                    if not self._may_go_on():
                        return
                    if entry.name in tried or self._is_kept(entry, keep):
                        continue
                    finds = True
                    if entry.is_dir(follow_symlinks=False):
                        tried.add(entry.name)
                        self._take(directory, entry.name)
                    elif not _try_removal(os.unlink, entry.name, directory):
                        tried.add(entry.name)
                        self.stuck += 1
        for name, below in keep.items():
            if below is not None:
                with suppress(OSError):
                    inner = _enter(directory, name)
                    try:
                        self.strip(inner, below)
                    finally:
                        os.close(inner)

    def _is_kept(self, entry: os.DirEntry[str], keep: Tree) -> bool:
        return entry.name in keep and (keep[entry.name] is not None) == entry.is_dir(follow_symlinks=False)

    def _take(self, directory: int, name: str) -> None:
        if _try_removal(os.rmdir, name, directory):  # an empty directory is done
            return
        if directory == self._top:
            self._todo.append(name)
            return
        new = f"{self._prefix}{self._number}"
        self._number += 1
        try:
            _unlock(directory, name)  # a moved directory must be writable itself, for its entry `..`
            os.rename(name, new, src_dir_fd=directory, dst_dir_fd=self._top)
        except OSError:
            self.stuck += 1
        else:
            self._todo.append(new)

    def remove_directories(self) -> None:
        """Empty and remove the directories that were moved up until none is left."""
        while self._todo and self._may_go_on():
            name = self._todo.popleft()
            try:
                _unlock(self._top, name)
                directory = _enter(self._top, name)
            except OSError:
                self.stuck += 1
                continue
            try:
                if _mount(directory) == _mount(self._top):
                    self.strip(directory, {})
            finally:
                os.close(directory)
            if not _try_removal(os.rmdir, name, self._top):
                self.stuck += 1


def _enter(parent: int, name: str) -> int:
    return os.open(name, DIRECTORY, dir_fd=parent)


def _unlock(parent: int, name: str) -> None:
    """Restore the owner's rights on a directory, through a descriptor, so that nothing can replace it meanwhile."""
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        if os.fstat(handle).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            Path(f"/proc/self/fd/{handle}").chmod(stat.S_IRWXU)
    finally:
        os.close(handle)


def _try_removal(remove: Callable[..., None], name: str, parent: int) -> bool:
    try:
        remove(name, dir_fd=parent)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _mount(handle: int) -> str:
    """Return the mount of an open directory. The device would not do: a bind mount has that of its source."""
    lines = Path(f"/proc/self/fdinfo/{handle}").read_text(encoding="ascii").splitlines()
    return next((line for line in lines if line.startswith("mnt_id:")), "")
