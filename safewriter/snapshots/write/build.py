"""Build a snapshot from a DataFrame: one Spark job writes all shards, then the driver publishes."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from safewriter.objects.s3 import custom_endpoint, open_store
from safewriter.snapshots.errors import ConfigValidationError, ManifestParseError, ReaderStateError
from safewriter.snapshots.format.manifest import Manifest, Shard
from safewriter.snapshots.read.source import Source
from safewriter.snapshots.write.attempt import begin
from safewriter.snapshots.write.choose_routing import routing_of_build
from safewriter.snapshots.write.input_check import check_input
from safewriter.snapshots.write.job import BuildJob
from safewriter.snapshots.write.limits import RateLimits
from safewriter.snapshots.write.options import cached, overridden
from safewriter.snapshots.write.paths import Paths
from safewriter.snapshots.write.retry import written_with_retries
from safewriter.snapshots.write.rows import RowFormat
from safewriter.snapshots.write.unchanged import earlier_shards
from safewriter.snapshots.write.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark import StorageLevel
    from pyspark.sql import DataFrame

    from safewriter.snapshots.config import RetryConfig, WriteConfig
    from safewriter.snapshots.write.values import ValueSpec

__all__ = ["BuildResult", "BuildStats", "write_sharded", "write_single_db"]


@dataclass(frozen=True, slots=True)
class BuildStats:
    """Durations of this attempt, in milliseconds, and numbers of rows. `rows_written`: the rows of all shards, also of
    those taken over.
    """

    write_ms: int
    publish_ms: int
    rows_read: int
    rows_written: int


@dataclass(frozen=True, slots=True)
class BuildResult:
    """A published snapshot. `already_committed`: an earlier attempt of this run has published it, and this attempt has
    built nothing. `run_record_ref`: the record of the build; None if there is none. `taken_over`: how many of the
    shards the snapshot before had, with the same rows.
    """

    run_id: str
    manifest_ref: str
    shards: tuple[Shard, ...]
    stats: BuildStats
    already_committed: bool = False
    run_record_ref: str | None = None
    taken_over: int = 0


def write_sharded(
    df: DataFrame,
    config: WriteConfig,
    *,
    key_col: str,
    value_spec: ValueSpec,
    spark_conf_overrides: Mapping[str, str] | None = None,
    cache_input: bool = False,
    storage_level: StorageLevel | None = None,
    max_writes_per_second: float | None = None,
    max_write_bytes_per_second: float | None = None,
    step: str | None = None,
) -> BuildResult:
    """Write a snapshot and make it current.

    With a checkpoint bucket (`SW_CHECKPOINT_BUCKET`, which the handler sets) the build is guarded like a write to a
    table. In a turn of the coordinator, the build writes the turn's token to `_CURRENT` at its start; a build with a
    lower token cannot publish after that.

    Raises `ConfigValidationError` for an invalid configuration, `KeyRangeError`, `ValueEncodingError` and
    `ShardAssignmentError` for a row that cannot be written, `ShardWriteError` for a shard, `ShardCoverageError` if not
    each row was written, `PublishConflictError` if another build was faster, `TurnLostError` if the turn has ended,
    `StoreError` if the store does not answer before the publication, `ManifestPublishError` if it refuses that,
    `MissingPackageError` without a package of the extra `snapshots`, and the errors of `SafeWriter` if it is guarded.
    The current snapshot is unchanged then; only after `PublishCurrentError` or `UnknownOutcomeError` the new one may be
    current.

    Parameters
    ----------
    spark_conf_overrides
        Settings of the session while the build runs. They also apply to other work of the session meanwhile.
    cache_input, storage_level
        Keep the input in Spark's cache while the build runs. Needed for a source that differs from one read to the
        next, if the number of rows determines the number of shards.
    max_writes_per_second, max_write_bytes_per_second
        The rate of rows, and of bytes of keys and values, at which each task attempt fills its shards, one after the
        other. Spark runs as many tasks at once as it has cores. Uploads are not limited.
    step
        The name of this build if a guarded run has several below one prefix. It must be the same on a retry.
    """
    limits = RateLimits(max_writes_per_second, max_write_bytes_per_second)
    with (
        overridden(df.sparkSession, spark_conf_overrides),
        cached(df, cache_input=cache_input, storage_level=storage_level) as rows,
    ):
        return _build(rows, config, key_col=key_col, value_spec=value_spec, step=step, limits=limits)


def write_single_db(
    df: DataFrame,
    config: WriteConfig,
    *,
    key_col: str,
    value_spec: ValueSpec,
    cache_input: bool = True,
    storage_level: StorageLevel | None = None,
    spark_conf_overrides: Mapping[str, str] | None = None,
    max_writes_per_second: float | None = None,
    max_write_bytes_per_second: float | None = None,
    step: str | None = None,
) -> BuildResult:
    """Write a snapshot of one shard and make it current; parameters and errors are those of `write_sharded`.

    One task writes the shard as in `write_sharded`: Spark sorts the rows, and spills to disk what does not fit into
    memory. So the checks are the same, and the driver gets no rows.

    With `config.shard_retry` the shard is written again after a `ShardWriteError`, each time to a new URL. Retries
    read the input again, so it is cached by default.
    """
    if config.num_dbs != 1:
        raise ConfigValidationError(f"write_single_db writes one shard; give num_dbs=1, not {config.num_dbs}")
    limits = RateLimits(max_writes_per_second, max_write_bytes_per_second)
    with (
        overridden(df.sparkSession, spark_conf_overrides),
        cached(df, cache_input=cache_input, storage_level=storage_level) as rows,
    ):
        return _build(
            rows,
            config,
            key_col=key_col,
            value_spec=value_spec,
            step=step,
            limits=limits,
            retry=config.shard_retry,
        )


def _build(
    df: DataFrame,
    config: WriteConfig,
    *,
    key_col: str,
    value_spec: ValueSpec,
    step: str | None,
    limits: RateLimits,
    retry: RetryConfig | None = None,
) -> BuildResult:
    """Build and publish a snapshot."""
    check_input(df, config, key_col, value_spec)
    with begin(df.sparkSession, config, step) as attempt:
        if attempt.earlier is not None:
            return _earlier(Source(config.s3_prefix), attempt.earlier)
        began = time.monotonic()
        names, output = attempt.names, config.output
        with Watch(open_store(config.location), config, names) as watch:
            routing, rows_read = routing_of_build(df, config, key_col)
            watch.sharded(routing.num_dbs, _ms(time.monotonic() - began))
            job = BuildJob(
                Paths(config.s3_prefix, names.shard_prefix, names.run_id, output.db_path_template, names.build),
                RowFormat(routing, config.key_encoding, value_spec, key_col),
                config.duplicates,
                str(output.local_root or ""),
                custom_endpoint(),
                config.last_by,
                limits,
                config.adapter_factory,
                attempt.gate,
                is_incremental=config.incremental,
            )
            job = job.compared(df, earlier_shards(config, attempt.current))
            watch.takes_over(len(job.comparison.same))
            written = written_with_retries(
                lambda number: replace(job, first_attempt=number).run(df, rows_read), retry, watch.metrics
            )
            wrote = time.monotonic()
            watch.wrote(written, _ms(wrote - began))
            manifest = Manifest(
                run_id=names.run_id,
                created_at=names.created_at,
                num_dbs=routing.num_dbs,
                s3_prefix=config.s3_prefix,
                key_col=key_col,
                db_path_template=output.db_path_template,
                shard_prefix=names.shard_prefix,
                key_encoding=config.key_encoding,
                sharding=routing.document(),
                shards=written.shards,
                custom=config.manifest.custom_manifest_fields,
            )
            ref = attempt.publish(manifest)
            watch.published(ref)
        ended = time.monotonic()
    stats = BuildStats(_ms(wrote - began), _ms(ended - wrote), written.rows_read, manifest.rows)
    return BuildResult(
        names.run_id,
        ref,
        written.shards,
        stats,
        run_record_ref=watch.record.ref,
        taken_over=len(written.taken_over),
    )


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _earlier(source: Source, ref: str) -> BuildResult:
    """Return the result of an earlier attempt, from the manifest that `_CURRENT` names."""
    try:
        manifest = source.manifest(ref, source.named(ref).sha256)
    except (ManifestParseError, ReaderStateError) as error:
        raise ManifestParseError(
            f"this run has published {ref} before, and it cannot be read: {error}. Use a new clientToken for another"
            " build"
        ) from error
    return BuildResult(
        manifest.run_id, ref, manifest.shards, BuildStats(0, 0, 0, manifest.rows), already_committed=True
    )
