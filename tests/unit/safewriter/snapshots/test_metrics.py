"""A build of a snapshot sends its metric events to the caller's collector, whose errors harm nothing."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from safewriter.snapshots.metrics import MetricEvent, Metrics

if TYPE_CHECKING:
    import pytest


class Collector:
    def __init__(self, *, fails: bool = False) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self._fails = fails

    def emit(self, event: MetricEvent, payload: dict[str, Any]) -> None:
        self.events.append((event, payload))
        if self._fails:
            raise RuntimeError("no connection")


def test_an_event_comes_with_its_payload() -> None:
    """The payload has the time since the build began."""
    collector = Collector()
    metrics = Metrics(collector, clock=count(10.0, 1.5).__next__)
    metrics.emit(MetricEvent.WRITE_STARTED)
    metrics.emit(MetricEvent.WRITE_COMPLETED, rows_written=3)
    assert collector.events == [
        ("write.started", {"elapsed_ms": 1500}),
        ("write.completed", {"elapsed_ms": 3000, "rows_written": 3}),
    ]


def test_a_collector_that_fails_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Its first error is logged, and it still gets further events."""
    collector = Collector(fails=True)
    metrics = Metrics(collector)
    for _ in range(3):
        metrics.emit(MetricEvent.SHARD_COMPLETED)
    assert (len(collector.events), len(caplog.records)) == (3, 1)


def test_nobody_has_to_collect() -> None:
    """Without a collector, `emit` does nothing."""
    Metrics(None).emit(MetricEvent.WRITE_STARTED)
