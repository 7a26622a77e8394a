"""A build of a snapshot writes a failed shard again after growing pauses, unless the error would recur."""

from __future__ import annotations

from typing import Any

import pytest

from safewriter.snapshots.config import RetryConfig
from safewriter.snapshots.errors import ConfigValidationError, KeyRangeError, ShardWriteError
from safewriter.snapshots.metrics import MetricEvent, Metrics
from safewriter.snapshots.write.job import Written
from safewriter.snapshots.write.retry import written_with_retries

DONE = Written((), 0, 0)


class Writing:
    """Writes that fail a given number of times, with their events and pauses."""

    def __init__(self, failures: int, error: Exception | None = None) -> None:
        self.left = failures
        self.attempts: list[int] = []
        self.told: list[tuple[str, object]] = []
        self.pauses_s: list[float] = []
        self._error = error or ShardWriteError(
            "no answer", db_id=0, attempt="00-b", db_url="s3://lake/p", rows_written=7
        )

    def emit(self, event: MetricEvent, payload: dict[str, object]) -> None:
        self.told.append((event, payload.get("attempt", payload.get("attempts"))))

    def __call__(self, attempt: int) -> Written:
        self.attempts.append(attempt)
        if self.left:
            self.left -= 1
            raise self._error
        return DONE

    def run(self, retry: RetryConfig | None) -> Written:
        return written_with_retries(self, retry, Metrics(self), self.pauses_s.append)


def test_a_shard_is_written_again_after_growing_pauses() -> None:
    """Each attempt has its own number."""
    writing = Writing(3)
    assert writing.run(RetryConfig()) is DONE
    assert (writing.attempts, writing.pauses_s) == ([0, 1, 2, 3], [1.0, 2.0, 4.0])
    assert writing.told == [("write.shard.retried", number) for number in range(3)]


def test_the_error_of_the_last_attempt_is_raised() -> None:
    """It names its shard, and the collector gets the exhaustion."""
    writing = Writing(3)
    with pytest.raises(ShardWriteError) as failed:
        writing.run(RetryConfig(max_retries=2, initial_backoff_s=0.5, backoff_multiplier=3))
    assert (failed.value.db_url, failed.value.rows_written) == ("s3://lake/p", 7)
    assert (writing.attempts, writing.pauses_s) == ([0, 1, 2], [0.5, 1.5])
    assert writing.told[-1] == ("write.shard.retry_exhausted", 3)


def test_an_error_that_would_come_again_is_raised_at_once() -> None:
    """A bad key is such an error."""
    writing = Writing(1, KeyRangeError("id -1"))
    with pytest.raises(KeyRangeError):
        writing.run(RetryConfig())
    assert writing.attempts == [0]


def test_without_a_setting_nothing_is_repeated() -> None:
    """There is no event of exhaustion, either."""
    writing = Writing(1)
    with pytest.raises(ShardWriteError):
        writing.run(None)
    assert (writing.attempts, writing.told) == ([0], [])


@pytest.mark.parametrize("name", ["max_retries", "initial_backoff_s", "backoff_multiplier"])
def test_a_retry_that_cannot_be_is_refused(name: str) -> None:
    """The error names the setting."""
    for value in (-1, "3"):
        setting: dict[str, Any] = {name: value}
        with pytest.raises(ConfigValidationError, match=name):
            RetryConfig(**setting)
