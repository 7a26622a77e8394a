"""Metrics and run record of a build."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Self

from safewriter.snapshots.metrics import MetricEvent, Metrics
from safewriter.snapshots.write.build_record import BuildRecord
from safewriter.snapshots.write.progress import ShardProgress

if TYPE_CHECKING:
    from safewriter.objects.store import ObjectStore
    from safewriter.snapshots.config import WriteConfig
    from safewriter.snapshots.settle.leftovers import BuildId
    from safewriter.snapshots.write.job import Written

__all__ = ["Watch"]

_log = logging.getLogger(__name__)


class Watch:
    """Reports one build, for the length of a `with`. Its own errors never fail the build."""

    def __init__(self, store: ObjectStore, config: WriteConfig, names: BuildId) -> None:
        self.metrics = Metrics(config.metrics_collector)
        self.record = BuildRecord(store, names, config)
        self._progress = ShardProgress(store, names, self._stored)
        self._num_dbs = 0
        self._taken_over = 0
        self._rows = 0
        self._where = config.s3_prefix

    def __enter__(self) -> Self:
        self.metrics.emit(MetricEvent.WRITE_STARTED)
        self.record.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *rest: object) -> None:
        self._progress.stop()
        self.record.__exit__(kind, error, *rest)
        if kind is None:
            self.metrics.emit(MetricEvent.WRITE_COMPLETED, rows_written=self._rows)
        else:
            self.metrics.emit(MetricEvent.WRITE_FAILED, error_type=kind.__name__)

    def sharded(self, num_dbs: int, duration_ms: int) -> None:
        """Report the number of shards, and from now on how many are stored."""
        self.metrics.emit(MetricEvent.SHARDING_COMPLETED, num_dbs=num_dbs, duration_ms=duration_ms)
        self._num_dbs = num_dbs
        self._progress.start()

    def wrote(self, written: Written, duration_ms: int) -> None:
        """Report the written shards."""
        self._progress.stop()
        for shard in written.shards:
            if shard.db_id in written.taken_over:
                continue
            self.metrics.emit(
                MetricEvent.SHARD_COMPLETED,
                db_id=shard.db_id,
                attempt=shard.attempt,
                row_count=shard.row_count,
                db_bytes=shard.db_bytes,
                duration_ms=shard.writer_info["duration_ms"],
            )
        if written.waited_ms:
            self.metrics.emit(MetricEvent.RATE_LIMITER_THROTTLED, wait_seconds=written.waited_ms / 1000)
        self._rows = sum(shard.row_count for shard in written.shards)
        self.metrics.emit(MetricEvent.SHARDS_COMPLETED, rows_written=self._rows, duration_ms=duration_ms)

    def takes_over(self, shards: int) -> None:
        """Count as stored the shards that need not be written."""
        self._taken_over = shards

    def _stored(self, written: int) -> None:
        shards = written + self._taken_over
        _log.info("%s: %d of %d shards are stored", self._where, shards, self._num_dbs)
        self.metrics.emit(MetricEvent.SHARDS_PROGRESS, shards=shards, num_dbs=self._num_dbs)

    def published(self, manifest_ref: str) -> None:
        """Report that the snapshot is current."""
        self.record.published(manifest_ref)
        self.metrics.emit(MetricEvent.MANIFEST_PUBLISHED, manifest_ref=manifest_ref)
        self.metrics.emit(MetricEvent.CURRENT_PUBLISHED, manifest_ref=manifest_ref)
