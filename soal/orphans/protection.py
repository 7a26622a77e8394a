"""The kind of an object in a table's folder, and the files that open writes still need.

An open write needs the files that it may commit, or that its undo may restore.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final

from safewriter.errors import UnreadableCheckpointError
from safewriter.identity import ATTEMPT
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import OPEN

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from safewriter.objects import Location, ObjectStore
    from safewriter.record.checkpoints import ListedMarker
    from safewriter.record.document import Checkpoint

_CHANGES: Final = "_change_data/"
_VECTOR: Final = re.compile(r"deletion_vector_[0-9a-f-]{36}\.bin")
_PREFIX: Final = re.compile(f"{ATTEMPT.pattern}-")
_OF_DELTA: Final = re.compile(f"part-|cdc-|{_VECTOR.pattern}|{_PREFIX.pattern}")
_OTHER_FORMAT: Final = "metadata/"
"""The folder of the Iceberg metadata of a Delta table that Iceberg can read, too."""
_DOCUMENTS: Final = "checkpoints/"
_SKEW: Final = timedelta(minutes=1)
"""S3's dates have whole seconds, and the clocks of its machines may differ."""


class Kind(StrEnum):
    """The kinds of files that writers of a table leave behind. `soal orphans` deletes nothing else."""

    DATA = "data"
    CHANGE_DATA = "change_data"
    DELETION_VECTOR = "deletion_vector"
    MARKED = "marked"


@dataclass(frozen=True, slots=True)
class FilePrefix:
    """The attempt in a file's name; `write` is its write key, or the start of it (earlier versions)."""

    write: str
    epoch: int
    nonce: str


def kind_of(key: str, partition_columns: Collection[str]) -> Kind | None:
    """Return the kind of a key, relative to the table; None if its file is never deleted.

    As for `VACUUM`, names that start with `_` or `.` are hidden, except change data and folders of partition columns.
    """
    *folders, name = key.split("/")
    if key.startswith(_OTHER_FORMAT) or name.startswith(("_", ".")):
        return None
    hidden = [folder for folder in folders if folder.startswith(("_", "."))]
    if key.startswith(_CHANGES):
        hidden.remove(_CHANGES[:-1])
    if any(folder.partition("=")[0] not in partition_columns or "=" not in folder for folder in hidden):
        return None
    if _VECTOR.fullmatch(name):
        return Kind.DELETION_VECTOR
    if not name.endswith(".parquet"):
        return None
    if _PREFIX.match(name):
        return Kind.MARKED
    # With random file prefixes change data is not in a separate folder.
    return Kind.CHANGE_DATA if key.startswith(_CHANGES) or name.startswith("cdc-") else Kind.DATA


def is_of_delta(key: str) -> bool:
    """Return whether a file is named as writers of Delta tables name theirs. Others may be of a table whose metadata
    lie elsewhere.
    """
    return _OF_DELTA.match(key.rpartition("/")[2]) is not None


def prefix_of(key: str) -> FilePrefix | None:
    """Return the attempt in a file's name, or None."""
    match = _PREFIX.match(key.rsplit("/", 1)[-1])
    return None if match is None else FilePrefix(match[1], int(match[2]), match[3])


@dataclass(frozen=True, slots=True)
class OpenWrite:
    """A write whose verdict is open, on this table or (`run_key` is None) on an unknown one.

    `since` is the time of its first marker, by the store's clock: all its files are younger.
    """

    write_key: str
    run_key: str | None
    since: datetime


@dataclass(frozen=True)
class Attempts:
    """The attempts at writing one table, from the checkpoint bucket."""

    store: ObjectStore
    table: Location

    @cached_property
    def open_writes(self) -> tuple[OpenWrite, ...]:
        """The open writes at the first access.

        Access them after listing the table's files and before reading the end of its log: then each listed file is
        protected here, or its write has a verdict and its commit, if any, is in the log.
        """
        markers: dict[str, ListedMarker] = {}
        for marker in Checkpoints(self.store).marked():
            first = markers.get(marker.write_key, marker)
            markers[marker.write_key] = marker if marker.since < first.since else first
        writes = (self._open_write(marker) for marker in markers.values())
        return tuple(write for write in writes if write is not None)

    @property
    def protected_from(self) -> datetime | None:
        """The time since which a file may belong to an open write; None if no write is open."""
        return min((write.since for write in self.open_writes), default=None)

    def protects(self, last_modified: datetime) -> bool:
        """Return whether an object with this date may belong to an open write."""
        start = self.protected_from
        return start is not None and last_modified > start - _SKEW

    def prefix_obstacle(self, prefix: FilePrefix) -> str | None:
        """Return why an attempt's files may not be deleted, or None if its write no longer needs them."""
        documents = self._documents.get(prefix.write)
        if documents is None:
            documents = self._documents[prefix.write] = self._read(prefix.write)
        for document in documents:
            if prefix.epoch < document.epoch or (prefix.epoch == document.epoch and document.status not in OPEN):
                return None
        if documents:
            return f"its write is open: {documents[0].write_key}; settle it with: soal recover"
        return "the checkpoint bucket has no document of its attempt"

    @cached_property
    def _documents(self) -> dict[str, tuple[Checkpoint, ...]]:
        return {}

    def _open_write(self, marker: ListedMarker) -> OpenWrite | None:
        checkpoints = Checkpoints(self.store)
        try:
            stored = checkpoints.read(marker.write_key)
            if stored is not None:
                document = stored.document
                is_ours = document.table == str(self.table) and document.status in OPEN
                return OpenWrite(marker.write_key, document.run_key, marker.since) if is_ours else None
            announced = checkpoints.announced(marker)
        except UnreadableCheckpointError:
            return OpenWrite(marker.write_key, None, marker.since)
        if announced is None or announced.marker.table != str(self.table):
            return None
        return OpenWrite(marker.write_key, announced.marker.run_key, marker.since)

    def _read(self, start: str) -> tuple[Checkpoint, ...]:
        checkpoints = Checkpoints(self.store)
        documents = []
        for listed in self.store.list(f"{_DOCUMENTS}{start}"):
            try:
                stored = checkpoints.read(listed.key.removeprefix(_DOCUMENTS).removesuffix(".json"))
            except UnreadableCheckpointError:
                continue
            if stored is not None and stored.document.table == str(self.table):
                documents.append(stored.document)
        return tuple(documents)
