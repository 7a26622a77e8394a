"""The place where a job runs: a fresh private directory under /tmp, and what the kernel says about memory."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["NoSpaceError", "Sandbox", "forbids_execution", "oom_kills", "open_sandbox"]

_PREFIX: Final = "soal-"
_LOCK: Final = ".lock"
_FREE_MIN_MB: Final = 128
_MIB: Final = 1024 * 1024


class NoSpaceError(Exception):
    """The temporary storage is too full to start Spark."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A request's own directory, mode 0700, and what lies where in it."""

    root: Path

    @property
    def scripts(self) -> Path:
        """The script and the Python files, and nothing else: this is the script's `sys.path[0]`."""
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
        """Exists once the script may run; Java and Python start without it."""
        return self.root / "go"

    @property
    def archive_log(self) -> Path:
        """Where Java says what it made of the class-data archive."""
        return self.root / "archive.log"

    @property
    def properties_file(self) -> Path:
        return self.root / "spark.properties"


@contextmanager
def open_sandbox(base: Path, *, free_min_mb: int = _FREE_MIN_MB) -> Iterator[Sandbox]:
    """Make a fresh directory under `base` and remove it at the end, whatever happens.

    Directories that earlier requests have left (the platform kills without a warning, and /tmp survives) are removed
    first. Raises `NoSpaceError` if less than `free_min_mb` MiB are free then.
    """
    _remove_leftovers(base)
    free_mb = shutil.disk_usage(base).free // _MIB
    if free_mb < free_min_mb:
        raise NoSpaceError(
            f"{base} has {free_mb} MB free, {free_min_mb} MB are needed to start Spark; raise the function's ephemeral"
            " storage"
        )
    root = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
    lock = os.open(root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sandbox = Sandbox(root)
        for directory in (sandbox.scripts, sandbox.home, sandbox.tmp, sandbox.work):
            directory.mkdir(mode=0o700)
        yield sandbox
    finally:
        _remove(root)
        os.close(lock)


def _remove_leftovers(base: Path) -> None:
    """Remove the directories whose owner is dead: the kernel has given their lock back."""
    for root in base.glob(f"{_PREFIX}*"):
        try:
            if root.is_symlink() or root.stat().st_uid != os.getuid():
                continue
            lock = os.open(root / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:  # without a lock file it is not ours, or is just being made
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue  # another emulator on this machine is at work there
        else:
            _remove(root)
        finally:
            os.close(lock)


def _remove(root: Path) -> None:
    """Remove a tree, also one in which a job has taken its own permissions away; the lock file goes last."""

    def allow_and_retry(_function: object, path: str, _error: object) -> None:
        parent = Path(path).parent
        try:
            parent.chmod(0o700)
            if Path(path).is_dir() and not Path(path).is_symlink():
                Path(path).chmod(0o700)
                shutil.rmtree(path, ignore_errors=True)
            else:
                Path(path).unlink(missing_ok=True)
        except OSError:
            return  # what stays is removed by a later request, which finds the lock file

    for child in root.iterdir():
        if child.name == _LOCK:
            continue
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child, onerror=allow_and_retry)
        else:
            child.unlink(missing_ok=True)
    if [child.name for child in root.iterdir()] == [_LOCK]:
        shutil.rmtree(root, ignore_errors=True)


def forbids_execution(base: Path) -> bool:
    """Tell whether native libraries that are unpacked in a directory cannot be loaded (mount option noexec)."""
    return bool(os.statvfs(base).f_flag & os.ST_NOEXEC)


def oom_kills(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> Mapping[str, int]:
    """Return how many processes the kernel has killed for memory, by every counter that can be read here.

    No exit code tells of it: the parent of a killed Python worker sees an ordinary exception.
    """
    files = {
        "vmstat": proc / "vmstat",
        "cgroup2": cgroups / "memory.events",
        "cgroup1": cgroups / "memory" / _own_cgroup(proc) / "memory.oom_control",
    }
    counts = {}
    for name, path in files.items():
        try:
            match = re.search(r"^oom_kill (\d+)$", path.read_text(encoding="ascii"), re.MULTILINE)
        except OSError:
            continue
        if match is not None:
            counts[name] = int(match[1])
    return counts


def _own_cgroup(proc: Path) -> str:
    try:
        match = re.search(r"^\d+:memory:/(.*)$", (proc / "self" / "cgroup").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return ""
    return "" if match is None else match[1]
