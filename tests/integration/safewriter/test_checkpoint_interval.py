"""Delta's checkpoints lie a hundred commits apart, and nothing of the guard needs a nearer one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import safewriter
from safewriter import SafeWriter
from safewriter.deadline import epoch_ms
from safewriter.objects.s3 import table_store
from safewriter.settle.recovery import Cause, Recovery
from tests.support.command_line import app
from tests.support.hygiene import wait_for_hygiene
from tests.support.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3

pytestmark = pytest.mark.spark

INTERVAL = "delta.checkpointInterval"
DAYS_8_S = 8 * 86_400


def append(spark: SparkSession, lake: Lake, step: str) -> None:
    with SafeWriter(spark, lake.table, step=step) as sw:
        spark.range(0, 1, 1, 1).write.format("delta").mode("append").save(sw.table)
        sw.success()


def properties(lake: Lake) -> dict[str, str]:
    table = lake.delta()
    assert table is not None
    return table.metadata().configuration


def checkpoints(lake: Lake) -> list[int]:
    return [int(key[11:31]) for key in sorted(lake.keys()) if key.endswith(".parquet") and ".checkpoint" in key]


def lengthen(lake: Lake, last: int) -> None:
    """Add commits by another writer up to a version, each with a copy of the table's first file."""
    (add,) = (action["add"] for action in lake.commits()[0] if "add" in action)
    body = lake.store.get(add["path"])
    assert body is not None
    for version in range(lake.version() + 1, last + 1):
        path = f"part-{version:05}-{version:08}-0000-4000-8000-000000000000-c000.snappy.parquet"
        info = {"operation": "WRITE", "operationParameters": {"mode": "Append"}, "isBlindAppend": True}
        lines: list[Any] = [{"commitInfo": info}, {"add": {**add, "path": path}}]
        lake.store.put(path, body.body)
        lake.store.put(f"_delta_log/{version:020}.json", "\n".join(map(json.dumps, lines)).encode())


def test_a_table_s_own_property_or_the_script_s_setting_decides(spark: SparkSession, lake: Lake) -> None:
    """A new table gets none: the next test shows what decides without one."""
    append(spark, lake, "first")
    assert properties(lake) == {}
    own, set_by_script = (Lake(lake.client, lake.endpoint, f"{lake.name}-{name}") for name in ("own", "script"))
    spark.sql(f"CREATE TABLE delta.`{own.table}` (id BIGINT) USING delta TBLPROPERTIES ('{INTERVAL}' = '7')")
    assert properties(own) == {INTERVAL: "7"}
    session = spark.newSession()
    session.conf.set("spark.databricks.delta.properties.defaults.checkpointInterval", "8")
    session.range(1).write.format("delta").save(set_by_script.table)
    assert properties(set_by_script) == {INTERVAL: "8"}


def test_a_job_may_create_a_table_with_properties_that_an_earlier_one_has_created(
    spark: SparkSession, lake: Lake
) -> None:
    """Spark's own catalog is empty in each job, and Delta compares the properties with the table's."""
    for job in ("first", "second"):
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS {job}_{lake.name[-8:]} (id BIGINT) USING delta"
            f" TBLPROPERTIES ('delta.appendOnly' = 'true') LOCATION '{lake.table}'"
        )
    assert properties(lake) == {"delta.appendOnly": "true"}


def test_a_log_of_a_hundred_and_more_commits_without_a_checkpoint_is_settled(
    spark: SparkSession, lake: Lake, s3: EmbeddedS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dead write is fenced off, a commit undone, a retry skipped, and an orphan file found; the next checkpoint is at
    a multiple of the interval.
    """
    append(spark, lake, "first")
    lengthen(lake, 105)
    assert checkpoints(lake) == []

    with pytest.raises(safewriter.SupersededError), SafeWriter(spark, lake.table, step="dead") as block:
        assert block.checkpoint is not None
        Recovery(lake.checkpoints, table_store, clock=epoch_ms).settle(block.checkpoint.write_key, Cause.RETRY)
        spark.range(1).write.format("delta").mode("append").save(block.table)
    with (
        pytest.raises(ZeroDivisionError),
        SafeWriter(spark, lake.table, step="undone", commit_point="success") as block,
    ):
        spark.range(1).write.format("delta").mode("append").save(block.table)
        _ = 1 / 0
    append(spark, lake, "undone")
    wait_for_hygiene()
    assert lake.operations()[106:] == ["SAFEWRITER FENCE", "WRITE", "SAFEWRITER REVERT", "WRITE"]
    assert (lake.rows(), lake.orphans()) == (107, set())
    lake.check()

    lengthen(lake, 199)
    append(spark, lake, "the two hundredth")
    assert checkpoints(lake) == [200]
    append(spark, lake, "the next")
    lake.store.put("part-00000-11111111-0000-4000-8000-000000000000-c000.snappy.parquet", b"left behind")
    monkeypatch.setattr(s3.wire, "clock_ahead_s", DAYS_8_S)
    lake.client.create_bucket(Bucket=f"soal-{lake.name[-12:]}")  # nobody may list the checkpoint bucket itself
    options = ("--endpoint-url", lake.endpoint, "--bucket", f"soal-{lake.name[-12:]}", "--json")
    done = CliRunner().invoke(app, ["orphans", lake.table, *options], catch_exceptions=False)
    assert (done.exit_code, len(json.loads(done.stdout)["orphans"])) == (0, 1)
