"""A table's metadata files, one for each commit, of which the catalog's pointer shows the newest.

A commit replaces the file that it was made from, and no other. So if the table remembers that it has shown that file
and does not know the commit's own, another commit came instead, and this one never can. While the table still shows the
file that it was made from, it may be on its way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.serializers import FromInputFile

from safewriter.objects.location import Location

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

__all__ = ["is_known", "is_over", "key_of", "read_metadata"]


def read_metadata(table: Table, path: str) -> TableMetadata | None:
    """Read a metadata file of a table; None if it is gone, or nothing that can be judged."""
    try:
        return FromInputFile.table_metadata(table.io.new_input(path))
    except (FileNotFoundError, ValueError):
        return None


def is_known(table: Table, path: str) -> bool:
    """Tell whether the table shows a metadata file, or says that it has shown it."""
    return key_of(path) == key_of(table.metadata_location) or _was_shown(table, path)


def is_over(table: Table, metadata: TableMetadata) -> bool:
    """Tell whether a commit that is not known to the table can never be made any more."""
    return bool(metadata.metadata_log) and _was_shown(table, metadata.metadata_log[-1].metadata_file)


def _was_shown(table: Table, path: str) -> bool:
    return any(key_of(entry.metadata_file) == key_of(path) for entry in table.metadata.metadata_log)


def key_of(path: str) -> str:
    """Return the key of a file, since one may be called s3:// here and s3a:// there; the path if it is not on S3."""
    try:
        return Location.parse(path).key
    except ValueError:
        return path
