"""What a job tells its supervisor: lines in a local file that outlive the process.

The supervisor may not list the checkpoint bucket, and after a SIGKILL it has nothing but what reached the kernel. Each
line is written by one write(2) to a file opened with O_APPEND, before the act it announces.
"""

from __future__ import annotations

import errno
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from safewriter.deadline import epoch_ms

__all__ = ["Entry", "Follower", "append", "is_complete", "is_whole", "read"]

_LINE_MAX_BYTES: Final = 65_536
_FILE_MAX_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: what happened, when (epoch milliseconds), and the details."""

    event: str
    at_ms: int
    fields: dict[str, Any]


def append(path: str | os.PathLike[str], event: str, **fields: Any) -> None:  # noqa: ANN401 - any JSON value
    """Append one entry; `ValueError` if it is too long for one line."""
    line = json.dumps({"event": event, "atMs": epoch_ms(), **fields}, separators=(",", ":")).encode()
    # The line break before it keeps a line that a full disk has torn from swallowing this one.
    line = b"\n" + line + b"\n"
    if len(line) > _LINE_MAX_BYTES:
        raise ValueError(f"a journal entry of {len(line)} bytes is longer than {_LINE_MAX_BYTES}")
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.write(handle, line) != len(line):
            raise OSError(
                errno.ENOSPC, "no room for a line of the journal; free space in the work directory", str(path)
            )
    finally:
        os.close(handle)


def read(path: str | os.PathLike[str]) -> tuple[Entry, ...]:
    """Read all whole entries; none if there is no file. A line that a kill has torn, or that is no entry, is left
    out.
    """
    return tuple(entry for line in _bytes(path).split(b"\n") if (entry := _parse(line)) is not None)


def is_whole(path: str | os.PathLike[str]) -> bool:
    """Tell whether a line that is missing was never written: every finished line is an entry, and all were read.

    A line that a full disk has torn swallows the one that is appended to it. The last line may be torn, since nobody
    has acted on it yet.
    """
    data = _bytes(path)
    return len(data) < _FILE_MAX_BYTES and all(_parse(line) is not None for line in data.split(b"\n")[:-1] if line)


def is_complete(path: str | os.PathLike[str]) -> bool:
    """Tell whether the file is there and short enough to be read as a whole.

    Who could not write a line has failed before doing what it announces, so a torn line hides nothing.
    """
    try:
        return Path(path).stat().st_size < _FILE_MAX_BYTES
    except FileNotFoundError:
        return False


class Follower:
    """What is appended to a journal, as it comes: each byte is read once."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._offset = 0

    def fresh(self) -> tuple[Entry, ...]:
        """Return the whole entries since the last call; costs one look at the file's size if there are none."""
        try:
            if self._path.stat().st_size <= self._offset:
                return ()
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read(_FILE_MAX_BYTES)
        except FileNotFoundError:
            return ()
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return tuple(entry for line in whole.split(b"\n") if (entry := _parse(line)) is not None)


def _bytes(path: str | os.PathLike[str]) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(_FILE_MAX_BYTES)
    except FileNotFoundError:
        return b""


def _parse(line: bytes) -> Entry | None:
    try:
        found = json.loads(line)
        return Entry(found.pop("event"), int(found.pop("atMs")), found)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
