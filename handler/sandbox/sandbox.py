"""The sandbox of a job: a fresh private directory under /tmp."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from handler.sandbox.removal import DIRECTORY, empty
from safewriter.errors import TryAgainError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from handler.sandbox.removal import Tree

    Shape: TypeAlias = tuple[tuple[int, int, tuple[tuple[str, bytes], ...]], ...]
    """Number, mode and extended attributes of the root, its lock and each directory in it."""

__all__ = ["LASTING", "NoSpaceError", "Sandbox", "check_space", "forbids_execution", "open_sandbox"]

_PREFIX: Final = "soal-"
_LOCK: Final = ".soal-sandbox"
_UNLABELLED: Final = ".soal-sandbox-new"
_LABEL: Final = b"A sandbox of SoAL: removed by the next run once nobody holds its lock.\n"
_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_OLD: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a job may have put a pipe there
_FREE_MIN_MB: Final = 128
_MIB: Final = 1024 * 1024
_BLOCK: Final = 512
_FOLDERS_MAX: Final = 1000
_NAMED_MAX: Final = 3


_ARCHIVE_LOG: Final = "archive.log"
LASTING: Final[Tree] = {
    _LOCK: None,
    _ARCHIVE_LOG: None,
    **{name: {} for name in ("scripts", "home", "tmp", "work")},
}
"""The entries that a sandbox keeps for its JVM until the first job."""
_BETWEEN_JOBS: Final[Tree] = {name: below for name, below in LASTING.items() if name != _ARCHIVE_LOG}
"""The entries kept between jobs: the log is about the JVM's start, and the first job may have changed it."""


class NoSpaceError(TryAgainError):
    """The temporary storage is too full to start Spark."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A request's own directory, mode 0700, and the paths in it."""

    root: Path

    @property
    def scripts(self) -> Path:
        """The folder of the script and the Python files only: it is the script's `sys.path[0]`."""
        return self.root / "scripts"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def tmp(self) -> Path:
        return self.root / "tmp"

    @property
    def work(self) -> Path:
        """The job's current directory."""
        return self.root / "work"

    @property
    def journal(self) -> Path:
        return self.root / "journal.jsonl"

    @property
    def event_file(self) -> Path:
        return self.root / "event.json"

    @property
    def go(self) -> Path:
        """The file that exists once the script may run; the JVM and Python start without it."""
        return self.root / "go"

    @property
    def event_logs(self) -> Path:
        """Where Spark writes its event logs, with the settings in clear: outside of what Spark may read
        (io.soal.disk.OwnDisk, which knows the folder by this name).
        """
        return self.root / "spark-events"

    @property
    def archive_log(self) -> Path:
        """The JVM's log about its use of the class-data archive."""
        return self.root / _ARCHIVE_LOG

    @property
    def properties_file(self) -> Path:
        return self.root / "spark.properties"

    @property
    def submission_file(self) -> Path:
        """The arguments for Spark's submission of the job."""
        return self.root / "submission"

    @property
    def job_file(self) -> Path:
        """The job's variables and places for its Python process."""
        return self.root / "job.json"

    @property
    def shape(self) -> Shape:
        """The current shape of what stays between two jobs, where the idle JVM works."""
        paths = (self.root, self.root / _LOCK, self.scripts, self.home, self.tmp, self.work)
        return tuple((path.lstat().st_ino, path.lstat().st_mode, _attributes(path)) for path in paths)

    def renew(self, shape: Shape, may_go_on: Callable[[], bool]) -> bool:
        """Empty the directories for the next job; return whether they are empty and still have the given shape."""
        try:
            with _open(None, self.root) as handle:
                return self.shape == shape and empty(handle, keep=_BETWEEN_JOBS, may_go_on=may_go_on) == 0
        except OSError:
            return False


def _attributes(path: Path) -> tuple[tuple[str, bytes], ...]:
    """Return the extended attributes of a path, in which a job could leave data for the next one."""
    try:
        names = os.listxattr(path, follow_symlinks=False)
    except OSError as error:
        if error.errno == errno.ENOTSUP:  # the file system has none
            return ()
        raise
    return tuple(sorted((name, os.getxattr(path, name, follow_symlinks=False)) for name in names))


@contextmanager
def open_sandbox(
    path: Path,
    *,
    free_min_mb: int = _FREE_MIN_MB,
    may_go_on: Callable[[], bool] = lambda: True,
    warn: Callable[[str], None] = lambda _: None,
) -> Iterator[Sandbox]:
    """Create a fresh directory under `path` and remove it at the end, whatever happens.

    First remove directories of earlier requests (the platform kills without a warning, and /tmp survives). Both
    removals stop once `may_go_on` returns False, since a job may leave more files than there is time for; `warn` gets a
    sentence about the rest. Raises `NoSpaceError` if less than `free_min_mb` MiB are then free.
    """
    place = os.open(path, DIRECTORY)
    try:
        for name in _remove_leftovers(place, may_go_on):
            warn(f"{path / name} is what an earlier job has left, and could not be removed in time: the next job will")
        check_space(path, free_min_mb)
        root = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=path))
        with _open(place, root.name) as handle, _open(handle, _UNLABELLED, _NEW) as lock:
            try:
                _label(handle, lock)
                sandbox = Sandbox(root)
                for directory in (sandbox.scripts, sandbox.home, sandbox.tmp, sandbox.work):
                    directory.mkdir(mode=0o700)
                yield sandbox
            finally:
                if not _remove(place, root.name, handle, may_go_on):
                    warn(f"{root} could not be removed in time: the next job gets another directory, and removes it")
    finally:
        os.close(place)


@contextmanager
def _open(parent: int | None, name: str | Path, flags: int = DIRECTORY) -> Iterator[int]:
    handle = os.open(name, flags, 0o600, dir_fd=parent)
    try:
        yield handle
    finally:
        os.close(handle)


def _label(handle: int, lock: int) -> None:
    """Label a directory as a sandbox. Lock and complete the lock file before it gets the name that others look for."""
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.write(lock, _LABEL)
    os.rename(_UNLABELLED, _LOCK, src_dir_fd=handle, dst_dir_fd=handle)


def _remove_leftovers(place: int, may_go_on: Callable[[], bool]) -> Iterator[str]:
    """Remove the directories whose owner is dead, so that the kernel has released their lock. Yield those that stay."""
    with os.scandir(place) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(_PREFIX)]
    for name in names:
        with suppress(OSError), _open(place, name) as handle:  # a link is not opened
            if os.fstat(handle).st_uid != os.getuid():
                continue
            # Without the label it is a foreign directory, or a sandbox that is being created.
            with _open(handle, _LOCK, _OLD) as lock:
                # BlockingIOError: another emulator on this machine uses it.
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.read(lock, len(_LABEL) + 1) == _LABEL and not _remove(place, name, handle, may_go_on):
                    yield name


def _remove(parent: int, name: str, handle: int, may_go_on: Callable[[], bool]) -> bool:
    """Empty an open directory, wherever a job has moved it, and remove the entry with its name; return whether it is
    empty. Remove the lock file last: by it, a later request finds a directory that is not empty.
    """
    with suppress(OSError):
        os.fchmod(handle, stat.S_IRWXU)
    is_empty = empty(handle, keep={_LOCK: None}, may_go_on=may_go_on) == 0
    if is_empty:
        with suppress(OSError):
            os.unlink(_LOCK, dir_fd=handle)
    for remove in (os.rmdir, os.unlink):  # a job may have put a link there
        with suppress(OSError):
            remove(name, dir_fd=parent)
    return is_empty


def check_space(folder: Path, free_min_mb: int = _FREE_MIN_MB) -> None:
    """Raise `NoSpaceError` if less than `free_min_mb` MiB are free."""
    usage = shutil.disk_usage(folder)
    free_mb = usage.free // _MIB
    if free_mb < free_min_mb:
        raise NoSpaceError(
            f"{folder} has {free_mb} MB free of {usage.total // _MIB} MB, {free_min_mb} MB are needed to start Spark;"
            f" {_largest(folder) or 'nothing of an earlier run lies there'}. Raise the function's ephemeral storage"
        )


def _largest(root: Path) -> str:
    """Name the largest entries of a directory that a bounded search finds."""
    sizes: dict[str, int] = {}
    for folder, directories, files in islice(os.walk(root), _FOLDERS_MAX):
        top = Path(folder).relative_to(root).parts[:1]
        for name in (*files, *directories):
            with suppress(OSError):
                key = top[0] if top else name
                sizes[key] = sizes.get(key, 0) + Path(folder, name).lstat().st_blocks * _BLOCK
    largest = sorted(((size // _MIB, name) for name, size in sizes.items() if size >= _MIB), reverse=True)[:_NAMED_MAX]
    return (
        "" if not largest else "most of it is taken by " + ", ".join(f"{name!r} ({size} MB)" for size, name in largest)
    )


def forbids_execution(folder: Path) -> bool:
    """Return whether native libraries unpacked in a directory cannot be loaded (mount option noexec)."""
    return bool(os.statvfs(folder).f_flag & os.ST_NOEXEC)
