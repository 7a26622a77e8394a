"""Retry the writing of a shard."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from safewriter.snapshots.errors import ShardWriteError
from safewriter.snapshots.metrics import MetricEvent

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.snapshots.config import RetryConfig
    from safewriter.snapshots.metrics import Metrics
    from safewriter.snapshots.write.job import Written

__all__ = ["written_with_retries"]


def written_with_retries(
    write: Callable[[int], Written],
    retry: RetryConfig | None,
    metrics: Metrics,
    sleep: Callable[[float], object] = time.sleep,
) -> Written:
    """Call `write` with the number of the attempt, and retry after a `ShardWriteError`; other errors would recur.

    Raises the error of the last attempt.
    """
    retries = 0 if retry is None else retry.max_retries
    backoff_s = 0.0 if retry is None else retry.initial_backoff_s
    for attempt in range(retries + 1):
        try:
            return write(attempt)
        except ShardWriteError as error:
            if attempt == retries:
                if retries:
                    metrics.emit(MetricEvent.SHARD_RETRY_EXHAUSTED, db_id=error.db_id, attempts=attempt + 1)
                raise
            metrics.emit(MetricEvent.SHARD_RETRIED, db_id=error.db_id, attempt=attempt, backoff_s=backoff_s)
            sleep(backoff_s)
            backoff_s *= 1.0 if retry is None else retry.backoff_multiplier
    raise AssertionError  # the last attempt returns or raises
