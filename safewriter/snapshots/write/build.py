"""Build a snapshot from a DataFrame: one Spark job writes all shards, then the driver publishes."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from safewriter.coordination.current import turn_of_this_thread
from safewriter.snapshots.errors import ConfigValidationError
from safewriter.snapshots.format.manifest import Manifest, Shard
from safewriter.snapshots.routing.routing import HashRouting, Routing
from safewriter.snapshots.write.job import Job, Paths
from safewriter.snapshots.write.publish import Publisher
from safewriter.snapshots.write.rows import RowFormat

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from safewriter.snapshots.config import WriteConfig
    from safewriter.snapshots.write.values import ValueSpec

__all__ = ["BuildResult", "BuildStats", "write_sharded"]


@dataclass(frozen=True, slots=True)
class BuildStats:
    """How a build went. Durations in milliseconds."""

    write_ms: int
    publish_ms: int
    rows_read: int
    rows_written: int


@dataclass(frozen=True, slots=True)
class BuildResult:
    """A published snapshot."""

    run_id: str
    manifest_ref: str
    shards: tuple[Shard, ...]
    stats: BuildStats


def write_sharded(df: DataFrame, config: WriteConfig, *, key_col: str, value_spec: ValueSpec) -> BuildResult:
    """Write a snapshot and make it current.

    In a turn of the coordinator, `_CURRENT` gets the turn's token at once, and refuses a lower one from then on.

    Raises `ConfigValidationError` for a build that cannot be, `ShardCoverageError` if not each row was written,
    `PublishConflictError` if another build was faster, `TurnLostError` if the turn has ended. `_CURRENT` is as it was
    then.
    """
    from safewriter.objects.s3 import custom_endpoint, open_store

    turn = turn_of_this_thread()
    run_id = config.output.run_id or uuid.uuid4().hex
    publisher = Publisher(open_store(config.location))
    if turn is not None:
        turn.check()
    token = None if turn is None else turn.token
    base = publisher.base(token)
    began = time.monotonic()
    created = datetime.now(UTC)
    routing, rows_read = _routing(df, config)
    output = config.output
    job = Job(
        Paths(config.s3_prefix, output.shard_prefix, run_id, output.db_path_template, uuid.uuid4().hex[:16]),
        RowFormat(routing, config.key_encoding, value_spec, key_col),
        config.duplicates,
        str(output.local_root),
        custom_endpoint(),
    )
    written = job.run(df, rows_read)
    wrote = time.monotonic()
    manifest = Manifest(
        run_id=run_id,
        created_at=created.isoformat(),
        num_dbs=routing.num_dbs,
        s3_prefix=config.s3_prefix,
        key_col=key_col,
        db_path_template=output.db_path_template,
        shard_prefix=output.shard_prefix,
        key_encoding=config.key_encoding,
        sharding=routing.document(),
        shards=written.shards,
        custom=config.manifest.custom_manifest_fields,
    )
    if turn is not None:
        turn.check()
    ref = publisher.publish(manifest, base, token=token)
    ended = time.monotonic()
    stats = BuildStats(round((wrote - began) * 1000), round((ended - wrote) * 1000), written.rows_read, manifest.rows)
    return BuildResult(run_id, ref, written.shards, stats)


def _routing(df: DataFrame, config: WriteConfig) -> tuple[Routing, int | None]:
    """Return the rule, and the number of rows if they had to be counted for it."""
    if config.num_dbs is not None:
        return HashRouting(config.num_dbs), None
    if config.max_keys_per_shard is None:
        raise ConfigValidationError("give num_dbs, or max_keys_per_shard")
    rows = df.count()
    return HashRouting(max(1, -(-rows // config.max_keys_per_shard))), rows
