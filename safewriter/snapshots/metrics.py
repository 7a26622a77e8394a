"""Events of builds, for metrics. An event that shardyfusion also has bears its name."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MetricEvent", "Metrics", "MetricsCollector"]

_log = logging.getLogger(__name__)


class MetricEvent(StrEnum):
    """The events of a build, with the fields of their payloads. Each also has `elapsed_ms` since the build began."""

    WRITE_STARTED = "write.started"
    SHARDING_COMPLETED = "write.sharding_completed"
    """The number of shards is known: `num_dbs`, `duration_ms`."""
    SHARDS_PROGRESS = "write.shards_progress"
    """While shards are written, at most every ten seconds, from a thread of its own: `shards`, how many are stored so
    far, of `num_dbs`.
    """
    SHARD_COMPLETED = "write.shard.completed"
    """For each written shard, when all are: `db_id`, `attempt`, `row_count`, `db_bytes`, `duration_ms`."""
    SHARD_RETRIED = "write.shard.retried"
    """By `write_single_db`: `db_id`, `attempt`, `backoff_s`."""
    SHARD_RETRY_EXHAUSTED = "write.shard.retry_exhausted"
    """By `write_single_db`: `db_id`, `attempts`."""
    SHARDS_COMPLETED = "write.shards_completed"
    """`rows_written`, `duration_ms`."""
    RATE_LIMITER_THROTTLED = "rate_limiter.throttled"
    """Once when all shards are written, if tasks have waited: `wait_seconds`, the sum of all tasks."""
    MANIFEST_PUBLISHED = "write.manifest_published"
    """`manifest_ref`."""
    CURRENT_PUBLISHED = "write.current_published"
    """`manifest_ref`."""
    WRITE_COMPLETED = "write.completed"
    """`rows_written`."""
    WRITE_FAILED = "write.failed"
    """`error_type`."""


class MetricsCollector(Protocol):
    """Receives events, on the driver only. Its exceptions are caught, and the first one is logged."""

    def emit(self, event: MetricEvent, payload: dict[str, Any]) -> None:
        """Receive one event."""
        ...


@dataclass(slots=True)
class Metrics:
    """Sends events to a collector, if there is one."""

    collector: MetricsCollector | None
    clock: Callable[[], float] = time.monotonic
    _began_s: float = field(init=False)
    _failed: bool = False

    def __post_init__(self) -> None:
        self._began_s = self.clock()

    def emit(self, event: MetricEvent, **payload: Any) -> None:  # noqa: ANN401 - what the event's description says
        """Send one event. Log the collector's first error, and ignore further ones."""
        if self.collector is None:
            return
        try:
            self.collector.emit(event, {"elapsed_ms": round((self.clock() - self._began_s) * 1000), **payload})
        except Exception:  # noqa: BLE001 - metrics must not fail the build
            if not self._failed:
                _log.exception("the metrics collector failed at %s; further errors of it are not logged", event)
            self._failed = True
