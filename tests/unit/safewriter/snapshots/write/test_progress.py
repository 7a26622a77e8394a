"""A build of a snapshot tells while it runs how many of its shards are stored."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from safewriter.objects.store import StoreError
from safewriter.snapshots.config import WriteConfig
from safewriter.snapshots.settle.leftovers import BuildId
from safewriter.snapshots.write import watch as watch_module
from safewriter.snapshots.write.progress import ShardProgress
from safewriter.snapshots.write.watch import Watch
from tests.support.memory_store import MemoryObjectStore
from tests.support.waiting import BUSY_S, until

if TYPE_CHECKING:
    import pytest

    from safewriter.snapshots.metrics import MetricEvent

NAMES = BuildId.draw("r", "shards", "runs", datetime(2026, 11, 27, tzinfo=UTC))


def put(store: MemoryObjectStore, db_id: int, task: str = "t", names: BuildId = NAMES) -> None:
    store.put(f"{names.run_prefix}db={db_id:05d}/attempt=00-{names.build}-{task}/shard.db", b"")


def test_each_shard_counts_once() -> None:
    """Not those of other builds of the run, nor a second attempt's."""
    store = MemoryObjectStore()
    put(store, 0)
    put(store, 0, "again")
    put(store, 1)
    put(store, 2, names=replace(NAMES, build="f" * 16))
    assert NAMES.stored_shards(store) == 2


def test_a_new_number_is_told_until_the_shards_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same number is told once."""
    store = MemoryObjectStore()
    listings: list[str] = []
    listed = store.list

    def noted(prefix: str, **more: Any) -> Any:
        listings.append(prefix)
        return listed(prefix, **more)

    monkeypatch.setattr(store, "list", noted)
    told: list[int] = []
    came = threading.Event()

    def tell(shards: int) -> None:
        told.append(shards)
        came.set()

    progress = ShardProgress(store, NAMES, tell, every_s=0.001)
    progress.start()
    for db_id in range(2):
        came.clear()
        put(store, db_id)
        assert came.wait(BUSY_S)
    at = len(listings)
    until(lambda: len(listings) > at + 3, timeout_s=BUSY_S)
    progress.stop()
    put(store, 2)
    assert told == [1, 2]


def test_a_store_that_does_not_list_ends_only_the_progress(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The build goes on."""
    store = MemoryObjectStore()

    def denied(*_: object, **__: object) -> None:
        raise StoreError("no right", denied=True)

    monkeypatch.setattr(store, "list", denied)
    progress = ShardProgress(store, NAMES, lambda _: None, every_s=0.001)
    progress.start()
    progress._thread.join(BUSY_S)
    progress.stop()
    assert "no right" in caplog.text


def test_the_collector_and_the_log_have_it(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A job under the handler has a log, and no collector."""
    store = MemoryObjectStore()
    came = threading.Event()
    payloads: list[dict[str, Any]] = []

    class Collector:
        def emit(self, event: MetricEvent, payload: dict[str, Any]) -> None:
            if event == "write.shards_progress":
                payloads.append(payload)
                came.set()

    monkeypatch.setattr(watch_module, "ShardProgress", partial(ShardProgress, every_s=0.001))
    put(store, 0)
    config = WriteConfig(num_dbs=8, s3_prefix="s3://lake/p", metrics_collector=Collector())
    with caplog.at_level(logging.INFO), Watch(store, config, NAMES) as watch:
        watch.sharded(8, 1)
        assert came.wait(BUSY_S)
    assert (payloads[0]["shards"], payloads[0]["num_dbs"]) == (1, 8)
    assert "s3://lake/p: 1 of 8 shards are stored" in caplog.text
