"""The journal: lines in a local file by which a job reports to its supervisor, and which outlive the process.

The supervisor may not list the checkpoint bucket, and after a SIGKILL it has nothing but what reached the kernel. Each
line is written by one write(2) to a file opened with O_APPEND, before the act it announces.

The job may delete or overwrite the file. So the supervisor makes it and reads it through one descriptor, which a
deletion does not touch; the job never makes the file, so it cannot write to one that the supervisor does not read.
"""

from __future__ import annotations

import errno
import json
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from safewriter.deadline import epoch_ms
from safewriter.entropy import unique_id
from safewriter.parsing import parsed

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

__all__ = ["Entry", "Event", "Journal", "append"]

_LINE_MAX_BYTES: Final = 65_536
_FILE_MAX_BYTES: Final = 16 * 1024 * 1024
# A full disk tears a line now and then. More than that comes from another writer, and must not delay the supervisor.
_GARBLED_MAX: Final = 100
Event = Literal[
    "journal_begun",  # the supervisor made the file
    # The job's Python (handler/driver):
    "python_started",
    "setting_ignored",
    "secret_set",  # among the settings of the script's own session
    "session_ready",
    "raised",  # one exception of the chain that ended the script
    "uncaught",  # the exception that ended the script
    "python_exited",  # the script's own end, with the exit code that it asked for
    "driver_ended",  # the process's end, by its parent
    # The guard (safewriter/writer.py, block/, backfill.py, and commit_passed also by sessions), by an attempt's nonce:
    "not_made",  # the guard raised before it had a nonce
    "write_opened",  # before any object of the write is on S3
    "not_entered",
    "too_late",  # a block or part was not begun for want of time
    "write_skipped",  # an earlier attempt has committed it
    "deadline",  # the watchdog settles the block
    "succeeded",  # success() has returned
    "block_left",  # at the statement that Delta cannot skip
    "block_outlived",  # by a statement of another thread
    "write_closed",
    # The guard, or Java (image/logstore):
    "commit_passed",  # before a commit is sent
    "refused",  # a statement of the block, Java only
    "stray",  # rows that a statement has written past the block, Java only
]
"""Every event: writers and readers name no other. A line with another one is of no reader's concern."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: what happened, when (epoch milliseconds), and the details."""

    event: Event
    at_ms: int
    fields: dict[str, Any]


def append(path: str | os.PathLike[str], event: Event, **fields: Any) -> None:  # noqa: ANN401 - any JSON value
    """Append one entry; `FileNotFoundError` if the journal is gone, `ValueError` if the line would be too long."""
    line = _line(event, fields)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        _write(handle, line, path)
    finally:
        os.close(handle)


class Journal:
    """The supervisor's side of a journal: a context manager that makes the file and keeps it open.

    Several threads may use it. `FileExistsError` if the file exists already.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._entries: list[Entry] = []
        self._offset = 0
        self._garbled = 0
        self._cut = self._closed = False
        self._handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        # If this first line is missing, the file was truncated, however much is appended afterwards.
        self._head = _line("journal_begun", {"token": unique_id()})
        try:
            _write(self._handle, self._head, path)
        except OSError:
            os.close(self._handle)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            if not self._closed:
                os.close(self._handle)
                self._closed = True

    def entries(self, since: int = 0) -> tuple[Entry, ...]:
        """Return the complete entries in their order, without the first `since`; also those that were read before a
        truncation. If there are no new ones it only asks for the file's size.
        """
        with self._lock:
            self._read()
            return tuple(self._entries[since:])

    def is_whole(self) -> bool:
        """Return whether the journal is complete: every finished line is an entry, and all were read.

        A line that a full disk has torn counts as finished once another follows. The last line may be torn: the job
        fails before the act that it announces.
        """
        return self.doubt() is None and not self._garbled

    def doubt(self) -> str | None:
        """Return why lines of the journal may be lost; None if none are.

        A job that could not write a line has failed before the act that the line announces: so neither a torn line nor
        a deleted file hides anything. This finds accidents. A script that wants to deceive has easier ways, since it
        runs in the same process as the guard.
        """
        with self._lock:
            self._read()
            if self._garbled > _GARBLED_MAX:
                return f"the journal {self._path} was written to by somebody else"
            if self._offset >= _FILE_MAX_BYTES:
                return f"the journal {self._path} is too long to be read"
            if self._cut or (not self._closed and os.pread(self._handle, len(self._head), 0) != self._head):
                return f"the journal {self._path} was truncated or overwritten"
            if not self._closed and self._is_replaced():
                return f"the journal {self._path} was replaced by another file"
            return None

    def _is_replaced(self) -> bool:
        try:
            there = os.stat(self._path)  # noqa: PTH116 - any kind of path
        except OSError:
            return False
        return not os.path.samestat(there, os.fstat(self._handle))

    def _read(self) -> None:
        if self._closed:
            return
        size = os.fstat(self._handle).st_size
        if size < self._offset:
            self._cut, self._offset = True, 0
        if size == self._offset or self._offset >= _FILE_MAX_BYTES:
            return
        data = os.pread(self._handle, _FILE_MAX_BYTES - self._offset, self._offset)
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole) if self._offset + len(data) < _FILE_MAX_BYTES else len(data)
        for line in whole.split(b"\n"):
            if not line:
                continue
            entry = _parse(line)
            if entry is not None:
                self._entries.append(entry)
                continue
            self._garbled += 1
            if self._garbled > _GARBLED_MAX:
                self._offset = _FILE_MAX_BYTES  # nothing more is read
                return


def _line(event: Event, fields: dict[str, Any]) -> bytes:
    line = json.dumps({"event": event, "atMs": epoch_ms(), **fields}, separators=(",", ":")).encode()
    # The line break before it keeps a line that a full disk has torn from swallowing this one.
    line = b"\n" + line + b"\n"
    if len(line) > _LINE_MAX_BYTES:
        raise ValueError(f"a journal entry of {len(line)} bytes is longer than {_LINE_MAX_BYTES}")
    return line


def _write(handle: int, line: bytes, path: str | os.PathLike[str]) -> None:
    if os.write(handle, line) != len(line):
        raise OSError(errno.ENOSPC, "no room for a line of the journal; free space in the work directory", str(path))


def _parse(line: bytes) -> Entry | None:
    try:
        fields = parsed(line)
        return Entry(fields.pop("event"), int(fields.pop("atMs")), fields)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None
