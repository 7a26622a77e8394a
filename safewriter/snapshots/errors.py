"""What may go wrong with a snapshot. A message names the column, the key or the object, and what to do."""

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
    """Base of all of them."""


class ConfigValidationError(SnapshotError):
    """A build cannot be as it is configured. Nothing was read or written."""


class MissingPackageError(SnapshotError):
    """A package is not installed that this snapshot needs."""


class KeyRangeError(SnapshotError):
    """A key that is null, of another type, out of the range of its encoding, or that two rows have."""


class ValueEncodingError(SnapshotError):
    """No value can be made of a row."""


class ShardAssignmentError(SnapshotError):
    """A row that belongs to no shard, or was written to another one than it belongs to."""


class ShardCoverageError(SnapshotError):
    """The tasks of a build did not answer for each row and each shard. Nothing was published."""


class ShardDamagedError(SnapshotError):
    """A shard's file is not the one that the manifest names."""


class OtherDatabaseError(SnapshotError):
    """A shard is in another database than SQLite, which this code does not read."""


class ShardWriteError(SnapshotError):
    """A shard could not be written.

    `db_id`, `attempt`, `db_url` and `rows_written` tell which one, and how far it was.
    """

    retryable = True

    def __init__(self, message: str, *, db_id: int, attempt: str, db_url: str, rows_written: int) -> None:
        super().__init__(message)
        self.db_id, self.attempt, self.db_url, self.rows_written = db_id, attempt, db_url, rows_written


class ManifestPublishError(SnapshotError):
    """A manifest or `_CURRENT` could not be written, or would be too large. `_CURRENT` is as it was."""


class PublishCurrentError(SnapshotError):
    """Nobody knows whether `_CURRENT` points to the new manifest, which is at `manifest_ref`.

    Or, after a rollback, it points to that one, and nobody knows whether it stays, or a clean-up removes it.
    """

    def __init__(self, message: str, *, manifest_ref: str) -> None:
        super().__init__(message)
        self.manifest_ref = manifest_ref


class PublishConflictError(SnapshotError):
    """Another build has published since this one began, so this one is not current. `manifest_ref`: its manifest, if it
    is written.
    """

    def __init__(self, message: str, *, manifest_ref: str | None) -> None:
        super().__init__(message)
        self.manifest_ref = manifest_ref


class ManifestParseError(SnapshotError):
    """A manifest or `_CURRENT` is damaged, or of a version that this code does not know."""


class ReaderStateError(SnapshotError):
    """There is no snapshot to read, or the reader is closed."""


class RoutingContextError(SnapshotError):
    """A reader was not given the columns by which the snapshot routes keys."""
