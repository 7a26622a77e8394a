"""Check whether a snapshot names a file of an attempt. A settler does so before it deletes such files: a file that a
snapshot names stays, whatever the table's properties or a document say.

Only snapshots that are younger than the claim can name them. Where there are none, which is the usual case, nothing is
read, and pyiceberg is not even imported.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final, cast

from safewriter.objects.location import Location
from safewriter.objects.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyiceberg.io import InputFile

    from safewriter.objects.store import ObjectStore

__all__ = ["names_any"]

_FILE_MAX_BYTES: Final = 64 << 20
"""The limit of a list of manifests, and of a manifest, which Iceberg ends at 8 MB."""


def names_any(
    metadata: Mapping[str, Any],
    claimed: int,
    folder: Location,
    table_store: Callable[[str], ObjectStore],
    may_go_on: Callable[[], bool],
) -> bool:
    """Return whether a snapshot names a file in `folder`. `claimed`: one that is older than the attempt's
    files; 0 if none is known.

    Raises `StoreError` if that cannot be read in time, and `ValueError` if a file is not there or cannot be understood.
    """

    def read(path: str) -> InputFile:
        if not may_go_on():
            raise StoreError(f"{path}: out of time while looking for the files that snapshots name")
        return _opened(path, table_store)

    begin, before = f"{folder.key}/", _sequence_number(metadata, claimed)
    manifests = {manifest for snapshot in _since(metadata, before) for manifest in _manifests(snapshot, read)}
    for manifest, sequence_number in manifests:
        if 0 < sequence_number <= before:
            continue  # it is older than the claim
        for path in _files(read(manifest)):
            where = Location.parse(path)
            if where.bucket == folder.bucket and where.key.startswith(begin):
                return True
    return False


def _sequence_number(metadata: Mapping[str, Any], snapshot_id: int) -> int:
    """Return a snapshot's place in the order of all commits; 0 if it is unknown: in format version 1, or expired."""
    snapshots = (snapshot for snapshot in metadata.get("snapshots") or () if snapshot["snapshot-id"] == snapshot_id)
    return next((int(snapshot.get("sequence-number") or 0) for snapshot in snapshots), 0)


def _since(metadata: Mapping[str, Any], before: int) -> list[Mapping[str, Any]]:
    snapshots = metadata.get("snapshots") or ()
    return [snapshot for snapshot in snapshots if not before or int(snapshot.get("sequence-number") or 0) > before]


def _manifests(snapshot: Mapping[str, Any], read: Callable[[str], InputFile]) -> Iterator[tuple[str, int]]:
    """Yield the paths of a snapshot's manifests, and the place of each in the order of commits, 0 without one."""
    from pyiceberg.manifest import read_manifest_list

    if "manifest-list" in snapshot:
        for manifest in read_manifest_list(read(snapshot["manifest-list"])):
            yield manifest.manifest_path, manifest.sequence_number or 0
    else:  # as old version 1 has it
        yield from ((path, 0) for path in snapshot["manifests"])


def _files(manifest: InputFile) -> Iterator[str]:
    """Yield the paths of all files that a manifest names, also of those that it says are deleted."""
    from pyiceberg.avro.file import AvroFile
    from pyiceberg.manifest import (
        DEFAULT_READ_VERSION,
        MANIFEST_ENTRY_SCHEMAS,
        DataFile,
        DataFileContent,
        FileFormat,
        ManifestEntry,
        ManifestEntryStatus,
    )

    with AvroFile[ManifestEntry](
        manifest,
        MANIFEST_ENTRY_SCHEMAS[DEFAULT_READ_VERSION],
        read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as entries:
        for entry in entries:
            yield entry.data_file.file_path


class _Bytes:
    """The content of a file, with the part of pyiceberg's `InputFile` that its reader uses."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def open(self) -> io.BytesIO:
        return io.BytesIO(self._body)


def _opened(path: str, table_store: Callable[[str], ObjectStore]) -> InputFile:
    where = Location.parse(path)
    stored = table_store(f"s3://{where.bucket}").get(where.key, max_bytes=_FILE_MAX_BYTES)
    if stored is None:
        raise ValueError(f"{path} is not there, or cannot be read")
    return cast("InputFile", _Bytes(stored.body))
