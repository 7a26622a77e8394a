"""What an attempt has written and no commit has ever brought into the table, since something ended before.

Data files, manifests and their lists bear the attempt's mark in their names (`MarkedFileIO`). Metadata files cannot:
catalogs number them. They are known by what they would have changed.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from pyiceberg.table import TableProperties

from safewriter.objects.location import Location
from safewriter.tables.iceberg.metadata_files import is_known, is_over, key_of, read_metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

    from safewriter.objects.store import ListedObject
    from safewriter.tables.iceberg.catalog import OneTable
    from safewriter.tables.iceberg.left import Left

__all__ = ["named_since", "remove_unstaged"]

_DATA_PATHS: Final = ("write.data.path", "write.object-storage.path", "write.folder-storage.path")
_METADATA: Final = ".metadata.json"
# How far the clock of an attempt and that of S3 may be apart.
_CLOCKS_MS: Final = 300_000


def remove_unstaged(one: OneTable, table: Table, left: Left, check: Callable[[], None]) -> int:
    """Delete the files of an attempt that nothing in the table leads to, and abort its unfinished uploads; return how
    many files went. `check` raises when there is no time for more.

    Only once the attempt's branch is gone: from then on no commit can bring its files in any more.
    """
    data, metadata = _data_folder(table), _metadata_folder(table)
    listed = {folder: list(_listed(one, folder, check)) for folder in (data, metadata)}
    marked = [
        str(Location(folder.bucket, found.key))
        for folder, files in listed.items()
        for found in files
        if left.is_named_by(found.key.rsplit("/", 1)[-1])
    ]
    written = [path for path in _metadata_files(metadata.bucket, listed[metadata], left) if not is_known(table, path)]
    if marked or written:
        table = one.load(left.table_id)  # as it is after the looks
    # Nobody can have committed this attempt's own files before it began.
    own = all(path.rsplit("/", 1)[-1].startswith(left.branch) for path in marked)
    began = table.metadata.snapshot_by_id(left.base) if own else None
    kept = named_since(table, 0 if began is None else began.sequence_number or 0, check) if marked else set()
    doomed = [*(path for path in marked if key_of(path) not in kept), *_never_came(table, left, written, check)]
    for path in doomed:
        check()
        table.io.delete(path)
    for upload in one.store(data).uploads(f"{data.key}/"):
        check()
        if left.is_named_by(upload.key.rsplit("/", 1)[-1]):
            one.store(data).abort(upload)
    return len(doomed)


def _data_folder(table: Table) -> Location:
    """Return where the table's data files lie, as Iceberg's location providers decide it."""
    properties = table.metadata.properties
    named = (properties[name] for name in _DATA_PATHS if name in properties)
    return Location.parse(next(named, f"{table.metadata.location}/data"))


def _metadata_folder(table: Table) -> Location:
    named = table.metadata.properties.get(TableProperties.WRITE_METADATA_PATH)
    return Location.parse(named or f"{table.metadata.location}/metadata")


# -- by name -----------------------------------------------------------------------------------------------------------


def _listed(one: OneTable, folder: Location, check: Callable[[], None]) -> Iterator[ListedObject]:
    for found in one.store(folder).list(f"{folder.key}/"):
        check()
        yield found


def named_since(table: Table, sequence: int, check: Callable[[], None], *, without: Collection[int] = ()) -> set[str]:
    """Return the keys of all that snapshots since `sequence` have brought in or carried on, their own files included;
    all snapshots' for 0, as in tables of format version 1.
    """
    found: set[str] = set()
    for snapshot in table.metadata.snapshots:
        if snapshot.snapshot_id in without or (snapshot.sequence_number or 0) < sequence:
            continue
        found.add(key_of(snapshot.manifest_list))
        for manifest in snapshot.manifests(table.io):
            key = key_of(manifest.manifest_path)
            if key in found or manifest.sequence_number < sequence:
                continue
            check()
            found.add(key)
            entries = manifest.fetch_manifest_entry(table.io, discard_deleted=False)
            found |= {key_of(entry.data_file.file_path) for entry in entries}
    return found


# -- by content --------------------------------------------------------------------------------------------------------


def _metadata_files(bucket: str, files: list[ListedObject], left: Left) -> Iterator[str]:
    """Yield the paths of the metadata files that were written since the first attempt began, by anybody."""
    since_ms = left.since_ms - _CLOCKS_MS
    for found in files:
        if found.key.endswith(_METADATA) and found.last_modified.timestamp() * 1000 >= since_ms:
            yield str(Location(bucket, found.key))


def _never_came(table: Table, left: Left, written: list[str], check: Callable[[], None]) -> Iterator[str]:
    """Yield the metadata files of the write's own commits that were not made, and never can be."""
    read = functools.cache(lambda path: read_metadata(table, path))
    for path in written:
        check()
        lost = None if is_known(table, path) else read(path)
        if lost is None:
            continue
        if lost.metadata_log:
            before = read(lost.metadata_log[-1].metadata_file) if is_over(table, lost) else None
            if before is not None and _is_ours(before, lost, left):
                yield path
        elif lost.table_uuid != table.metadata.table_uuid and any(map(left.marks, lost.snapshots)):
            yield path  # it would have created the table that is there now


def _is_ours(before: TableMetadata, after: TableMetadata, left: Left) -> bool:
    """Tell whether a commit is of the write: it makes, moves or drops one of its branches, adds or forgets one of its
    snapshots, or moves a branch to one or away from one.
    """
    refs = _refs(before) ^ _refs(after)
    known = {snapshot.snapshot_id: snapshot for snapshot in (*before.snapshots, *after.snapshots)}
    changed = {id_ for _, id_ in refs} | (_ids(before) ^ _ids(after))
    return any(left.is_named_by(name) for name, _ in refs) or any(
        left.marks(known[id_]) for id_ in changed if id_ in known
    )


def _refs(metadata: TableMetadata) -> set[tuple[str, int]]:
    return {(name, ref.snapshot_id) for name, ref in metadata.refs.items()}


def _ids(metadata: TableMetadata) -> set[int]:
    return {snapshot.snapshot_id for snapshot in metadata.snapshots}
