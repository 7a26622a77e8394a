"""A folder of shard files, named by their content, below a size limit. Several processes may share it.

All changes are made under the lock of one small file. Each user of a file holds a shared lock on it, which ends with
the process: a file that another process reads is never removed, and one that a dead process has left is. A file from
another process is compared with its SHA-256 before it is used.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from safewriter.entropy import unique_id
from safewriter.snapshots.errors import ReaderStateError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safewriter.snapshots.format.manifest import Shard

__all__ = ["CacheFolder", "CachedFile", "name_of", "usable"]


@contextmanager
def usable(what: str) -> Iterator[None]:
    """Raise `ReaderStateError` for an error of this machine's file system: it is none of the snapshot's."""
    try:
        yield
    except OSError as error:
        raise ReaderStateError(
            f"{what} cannot be kept on this machine: {error}. If the reader is closed, open another one; else make room"
            " in the cache's folder, or take another folder"
        ) from error


def name_of(shard: Shard) -> str:
    """Return a name for a shard's content: its SHA-256, else a hash of `checkpoint_id`, which changes with it."""
    if shard.sha256 is not None:
        return shard.sha256
    return hashlib.sha256(f"{shard.checkpoint_id}\n{shard.db_url}".encode()).hexdigest()


class CachedFile:
    """A file that is not removed while this object is alive."""

    __slots__ = ("_fd", "is_checked", "path")

    def __init__(self, path: Path, fd: int) -> None:
        self.path, self._fd = path, fd
        self.is_checked = False
        """Whether a reader has checked its pages."""
        fcntl.flock(fd, fcntl.LOCK_SH)
        os.utime(fd)

    def __del__(self) -> None:
        with suppress(OSError):
            os.utime(self._fd)  # it was in use until now
        os.close(self._fd)


class CacheFolder:
    """A folder. `limit_bytes` None: no limit. Files in use may exceed the limit until they are out of use."""

    def __init__(self, folder: Path, limit_bytes: int | None = None) -> None:
        self._folder = folder
        self.limit_bytes = limit_bytes
        self._known: set[tuple[str, int]] = set()
        """Names and inodes of the files whose content was checked, here or while they were fetched."""
        folder.mkdir(parents=True, exist_ok=True)

    def find(self, name: str, size: int | None, sha256: str | None = None) -> CachedFile | None:
        """Return a file, if it is there. Remove it as damaged, and return None, if its size or SHA-256 differs.

        The content is checked only once, since a file never changes.
        """
        path = self._path(name)
        with self._locked():
            try:
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return None
            if size is not None and os.fstat(fd).st_size != size:
                os.close(fd)
                path.unlink()
                return None
            file = CachedFile(path, fd)
        this = (name, os.fstat(fd).st_ino)
        if sha256 is not None and this not in self._known:
            with os.fdopen(os.dup(fd), "rb") as whole:
                digest = hashlib.file_digest(whole, "sha256").hexdigest()
            if digest != sha256:
                self.remove(name)
                return None
            self._known.add(this)
        return file

    @contextmanager
    def part(self, size: int) -> Iterator[BinaryIO]:
        """Yield a new file, which counts with its final size from the beginning."""
        path = self._folder / f"{unique_id()}.part"
        with self._locked():
            file = path.open("w+b")
            fcntl.flock(file, fcntl.LOCK_EX)
            file.truncate(size)
        try:
            with file:
                yield file
        finally:
            with suppress(FileNotFoundError), self._locked():
                path.unlink()

    def keep(self, part: BinaryIO, name: str) -> CachedFile:
        """Give a part its name, unless another process was faster; return the file with that name."""
        path = self._path(name)
        part.flush()
        os.fsync(part.fileno())  # else a crash of the machine may leave the name without the content
        with self._locked():
            if not path.exists():
                fcntl.flock(part, fcntl.LOCK_UN)
                Path(part.name).replace(path)
                self._known.add((name, os.fstat(part.fileno()).st_ino))
            return CachedFile(path, os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def free_bytes(self) -> int:
        """Return how many bytes more fit at most: the free space of the disk, and the size of all cached files."""
        with self._locked():
            files = sum(path.stat().st_size for path in self._folder.glob("*.db"))
            return shutil.disk_usage(self._folder).free + files

    def remove(self, name: str) -> None:
        """Remove a damaged file; processes that have it open keep it."""
        with self._locked():
            self._path(name).unlink(missing_ok=True)

    def make_room(self, needed: int) -> int:
        """Remove unused files, the least recently used first, until `needed` more bytes fit below the limit.

        Return how many bytes are still missing.
        """
        with self._locked():
            total, files = needed, []
            for path in self._folder.iterdir():
                is_part = path.suffix == ".part"
                if (is_part and self._removed(path)) or not (is_part or path.suffix == ".db"):
                    continue
                stat = path.stat()
                total += stat.st_size
                if not is_part:
                    files.append((stat.st_mtime_ns, stat.st_size, path))
            if self.limit_bytes is None:
                return 0
            for _, size, path in sorted(files):
                if total <= self.limit_bytes:
                    break
                if self._removed(path):
                    total -= size
            return max(0, total - self.limit_bytes)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.db"

    def _removed(self, path: Path) -> bool:
        """Remove a file unless it is in use; return whether it was removed."""
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            path.unlink()
            return True

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self._folder / "lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(lock, fcntl.LOCK_UN)  # a child that was forked meanwhile also has the file open
