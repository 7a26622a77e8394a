"""The JSON documents of `soal snapshot`, one for each command. Their schema is published as `report.schema.json` beside
this file, one definition each; `python -m soal.snapshots.report` prints it.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from pydantic import Field

from handler.json_document import schema_text
from safewriter.snapshots.keep.survey import Kind
from soal.console.document import Part

if TYPE_CHECKING:
    from safewriter.snapshots.format.manifest import Manifest
    from safewriter.snapshots.keep.cleanup import Cleanup
    from safewriter.snapshots.read.verification import Verification


class _Report(Part):
    schema_version: Literal[1] = 1
    prefix: str = Field(description="where the snapshots lie")


class ShardFound(Part):
    """A shard that has rows."""

    db_id: int
    db_url: str
    rows: int
    bytes: int
    sha256: str | None = Field(description="null if another program has built it")
    min_key: int | str | None
    max_key: int | str | None


class SnapshotReport(_Report):
    """One snapshot, as its manifest describes it."""

    manifest_ref: str
    is_current: bool
    run_id: str
    created_at: str
    num_dbs: int = Field(description="the number of shards, including those without rows")
    key_col: str
    key_encoding: str
    sharding: dict[str, Any] = Field(description="the rule that gives a key its shard")
    rows: int
    bytes: int
    custom: dict[str, Any]
    shards: tuple[ShardFound, ...]

    @classmethod
    def of_manifest(cls, prefix: str, ref: str, manifest: Manifest, *, is_current: bool) -> Self:
        """Return the report on a manifest."""
        return cls(
            prefix=prefix,
            manifest_ref=ref,
            is_current=is_current,
            run_id=manifest.run_id,
            created_at=manifest.created_at,
            num_dbs=manifest.num_dbs,
            key_col=manifest.key_col,
            key_encoding=manifest.key_encoding.value,
            sharding=dict(manifest.sharding),
            rows=manifest.rows,
            bytes=manifest.size,
            custom=dict(manifest.custom),
            shards=tuple(
                ShardFound(
                    db_id=shard.db_id,
                    db_url=shard.db_url,
                    rows=shard.row_count,
                    bytes=shard.db_bytes,
                    sha256=shard.sha256,
                    min_key=shard.min_key,
                    max_key=shard.max_key,
                )
                for shard in manifest.shards
            ),
        )


class ManifestFound(Part):
    """A snapshot that was published."""

    manifest_ref: str
    run_id: str
    created_at: datetime = Field(description="when its build began")
    published_at: datetime | None = Field(description="when it last became current; null if unknown")
    is_current: bool


class HistoryReport(_Report):
    """The snapshots of a prefix, newest builds first."""

    snapshots: tuple[ManifestFound, ...]


class ValueReport(_Report):
    """The value of a key."""

    manifest_ref: str
    key: int | str
    shard: int | None = Field(description="the shard that the key belongs to; null if no shard can have it")
    found: bool
    form: Literal["text", "hex", "base64"]
    value: str | None = Field(description="null if the snapshot has no such key")


class ValueFound(Part):
    """A key, and its value."""

    key: int | str
    shard: int | None = Field(description="the shard that the key belongs to; null if no shard can have it")
    found: bool
    value: str | None = Field(description="null if the snapshot has no such key")


class ValuesReport(_Report):
    """The values of several keys of one snapshot."""

    manifest_ref: str
    form: Literal["text", "hex", "base64"]
    values: tuple[ValueFound, ...]


class RouteReport(_Report):
    """The shard of a key."""

    manifest_ref: str
    key: int | str
    shard: int | None = Field(description="null if no shard can have the key")
    db_url: str | None = Field(description="the shard's folder; null if it has no rows")


class HealthReport(_Report):
    """Whether the current snapshot can be read, by its manifest and the sizes of its objects."""

    manifest_ref: str
    run_id: str
    shards: int
    rows: int
    age_s: float | None = Field(description="since its publication, by the store's clock; null if that is unknown")
    max_age_s: float | None
    faults: tuple[str, ...]
    is_healthy: bool

    @classmethod
    def of_snapshot(
        cls,
        prefix: str,
        ref: str,
        manifest: Manifest,
        faults: tuple[str, ...],
        *,
        age_s: float | None,
        max_age_s: float | None,
    ) -> Self:
        """Return the report on a snapshot with these faults of its shards."""
        if max_age_s is not None and (age_s is None or age_s > max_age_s):
            faults = (*faults, "it is too old" if age_s is not None else "nobody knows its age")
        return cls(
            prefix=prefix,
            manifest_ref=ref,
            run_id=manifest.run_id,
            shards=len(manifest.shards),
            rows=manifest.rows,
            age_s=age_s,
            max_age_s=max_age_s,
            faults=faults,
            is_healthy=not faults,
        )


class BuildReport(_Report):
    """A snapshot that was built and published."""

    run_id: str
    manifest_ref: str
    shards: int = Field(description="those that have rows")
    taken_over: int = Field(description="the shards that the snapshot before had, with the same rows")
    rows_read: int
    rows_written: int
    bytes: int
    write_ms: int
    publish_ms: int


class RollbackReport(_Report):
    """The current snapshot before and after a rollback."""

    before: str
    after: str
    run_id: str
    changed: bool = Field(description="whether the pointer was moved")
    dry_run: bool


class FaultFound(Part):
    """A difference between a shard and the manifest."""

    db_id: int
    db_url: str
    what: str


class VerifyReport(_Report):
    """The verification of a snapshot, shard by shard."""

    manifest_ref: str
    is_sound: bool
    shards: int
    rows: int
    keys: int | None = Field(description="the keys that were routed again; null if the rule needs other columns")
    unread: int = Field(
        description="the shards in another database than SQLite, of which only the objects' sizes were verified"
    )
    faults: tuple[FaultFound, ...]

    @classmethod
    def of_prefix(cls, prefix: str, verification: Verification) -> Self:
        """Return the report on a verification."""
        return cls(
            prefix=prefix,
            manifest_ref=verification.manifest_ref,
            is_sound=verification.is_sound,
            shards=verification.shards,
            rows=verification.rows,
            keys=verification.keys,
            unread=verification.unread,
            faults=tuple(map(FaultFound.of, verification.faults)),
        )


class RemovalFound(Part):
    """Something that no kept snapshot needs."""

    kind: Kind = Field(description="mark: left by a clean-up that died")
    key: str = Field(description="relative to the prefix")
    bytes: int
    since: datetime = Field(description="when it was written, or the upload begun")
    why: str
    removed: bool
    held: str | None = Field(description="why it stays")
    error: str | None = Field(description="why it could not be removed")


class CleanupReport(_Report):
    """The objects that were (or would be) removed."""

    dry_run: bool
    now: datetime = Field(description="by the store's clock, as all times")
    kept: tuple[str, ...] = Field(description="the manifests that stay")
    living: tuple[str, ...] = Field(description="the runs whose builds go on; the clean-up leaves their objects alone")
    unreadable: tuple[str, ...] = Field(description="unreadable records, whose runs count as living")
    young: int = Field(description="unreferenced objects of builds that are too young")
    removals: tuple[RemovalFound, ...]

    @classmethod
    def of_prefix(cls, prefix: str, report: Cleanup) -> Self:
        """Return the report on a clean-up."""
        return cls(
            prefix=prefix,
            dry_run=report.dry_run,
            now=report.survey.now,
            kept=report.survey.kept,
            living=tuple(sorted(report.survey.living)),
            unreadable=report.survey.unreadable,
            young=report.survey.young,
            removals=tuple(
                RemovalFound(
                    kind=removal.leftover.kind,
                    key=removal.leftover.key,
                    bytes=removal.leftover.bytes,
                    since=removal.leftover.since,
                    why=removal.leftover.why,
                    removed=removal.removed,
                    held=removal.held,
                    error=removal.error,
                )
                for removal in report.removals
            ),
        )


REPORTS: Final = (
    BuildReport,
    SnapshotReport,
    ValueReport,
    ValuesReport,
    RouteReport,
    HealthReport,
    HistoryReport,
    RollbackReport,
    VerifyReport,
    CleanupReport,
)


if __name__ == "__main__":
    print(schema_text(*REPORTS), end="")
