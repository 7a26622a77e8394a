"""The errors of snapshots. A message names the column, the key or the object, and what to do."""

from __future__ import annotations

from safewriter.errors import SafeWriterError

__all__ = [
    "ConfigValidationError",
    "KeyRangeError",
    "ManifestParseError",
    "ManifestPublishError",
    "MissingPackageError",
    "OtherDatabaseError",
    "PublishConflictError",
    "PublishCurrentError",
    "ReaderStateError",
    "RoutingContextError",
    "ShardAssignmentError",
    "ShardCoverageError",
    "ShardDamagedError",
    "ShardWriteError",
    "SnapshotError",
    "ValueEncodingError",
]


class SnapshotError(SafeWriterError):
    """The base of all errors of snapshots."""


class ConfigValidationError(SnapshotError):
    """The configuration is invalid. Nothing was published."""


class MissingPackageError(SnapshotError):
    """This snapshot needs a package that is not installed."""


class KeyRangeError(SnapshotError):
    """A key is null, of another type, out of the range of its encoding, or a duplicate."""


class ValueEncodingError(SnapshotError):
    """A row cannot be encoded as a value."""


class ShardAssignmentError(SnapshotError):
    """A row belongs to no shard, or came to a shard that it does not belong to."""


class ShardCoverageError(SnapshotError):
    """The tasks' counts of rows or shards do not add up. Nothing was published."""


class ShardDamagedError(SnapshotError):
    """A shard's file is not the one that the manifest names."""


class OtherDatabaseError(SnapshotError):
    """A shard is in a database other than SQLite, which this code does not read."""


class ShardWriteError(SnapshotError):
    """A shard could not be written.

    `db_id`, `attempt` and `db_url` identify it; `rows_written` is the number of rows before the error.
    """

    retryable = True

    def __init__(self, message: str, *, db_id: int, attempt: str, db_url: str, rows_written: int) -> None:
        super().__init__(message)
        self.db_id, self.attempt, self.db_url, self.rows_written = db_id, attempt, db_url, rows_written


class ManifestPublishError(SnapshotError):
    """A manifest or `_CURRENT` could not be written, or would be too large. `_CURRENT` is unchanged."""


class PublishCurrentError(SnapshotError):
    """It is unknown whether `_CURRENT` points to the new manifest, which is at `manifest_ref`.

    After a rollback: `_CURRENT` points to that manifest, but a clean-up may have removed it, or may remove it now.
    """

    def __init__(self, message: str, *, manifest_ref: str) -> None:
        super().__init__(message)
        self.manifest_ref = manifest_ref


class PublishConflictError(SnapshotError):
    """Another build has published since this one began, so this build is not current. `manifest_ref`: its manifest, if
    it was written.
    """

    def __init__(self, message: str, *, manifest_ref: str | None) -> None:
        super().__init__(message)
        self.manifest_ref = manifest_ref


class ManifestParseError(SnapshotError):
    """A manifest or `_CURRENT` is damaged, or of an unknown version."""


class ReaderStateError(SnapshotError):
    """There is no snapshot to read, or the reader is closed."""


class RoutingContextError(SnapshotError):
    """`routing_context` lacks a column by which the snapshot routes keys, or has it with another type."""
