"""The metrics and the record of a build on a real Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.objects.location import Location
from safewriter.objects.s3 import open_store
from safewriter.snapshots.config import WriteConfig
from safewriter.snapshots.errors import KeyRangeError
from safewriter.snapshots.write.build import write_sharded
from safewriter.snapshots.write.values import binary_col
from tests.support.lake import LAKE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from safewriter.snapshots.metrics import MetricEvent

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("lake")]

PREFIX = f"s3://{LAKE}/snapshots/watch"


class Collector:
    """Raises at the end, which has no effect."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def emit(self, event: MetricEvent, payload: dict[str, Any]) -> None:
        if event != "write.shards_progress":  # how many there are depends on the machine
            self.events.append((str(event), payload))
        if event in {"write.completed", "write.failed"}:
            raise RuntimeError("no connection")


def records() -> list[dict[str, Any]]:
    store = open_store(Location.parse(PREFIX))
    bodies = (store.get(listed.key) for listed in store.list("runs/"))
    return [json.loads(found.body) for found in bodies if found is not None]


def test_a_build_is_told_and_recorded(spark: SparkSession) -> None:
    """Event by event, on the driver; then for a failing build."""
    collector = Collector()
    config = WriteConfig(num_dbs=2, s3_prefix=PREFIX, metrics_collector=collector)
    frame = spark.range(400).selectExpr("id", "'v' AS v")
    result = write_sharded(frame, config, key_col="id", value_spec=binary_col("v"), max_writes_per_second=1000)
    events = dict(collector.events)
    assert [event for event, _ in collector.events] == [
        "write.started",
        "write.sharding_completed",
        "write.shard.completed",
        "write.shard.completed",
        "write.shards_completed",
        "write.manifest_published",
        "write.current_published",
        "write.completed",
    ]
    assert events["write.sharding_completed"]["num_dbs"] == 2
    assert events["write.shards_completed"]["rows_written"] == events["write.completed"]["rows_written"] == 400
    assert events["write.shard.completed"]["db_bytes"] == result.shards[1].db_bytes
    assert events["write.current_published"]["manifest_ref"] == result.manifest_ref
    (record,) = records()
    assert (record["status"], record["run_id"]) == ("succeeded", result.run_id)
    assert record["manifest_ref"] == result.manifest_ref
    assert result.run_record_ref is not None
    assert result.run_record_ref.startswith(f"{PREFIX}/runs/")

    with pytest.raises(KeyRangeError):
        write_sharded(
            frame.selectExpr("id - 1 AS id", "v"), config, key_col="id", value_spec=binary_col("v"), step="bad"
        )
    assert (collector.events[-1][0], collector.events[-1][1]["error_type"]) == ("write.failed", "KeyRangeError")
    (failed,) = (one for one in records() if one["status"] == "failed")
    assert (failed["error_type"], failed["manifest_ref"]) == ("KeyRangeError", None)
    assert failed["error_message"].startswith("id -1 is not from 0 to")
