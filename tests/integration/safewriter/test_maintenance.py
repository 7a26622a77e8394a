"""OPTIMIZE, VACUUM, auto-compaction, Delta's own checkpoints and log clean-up beside an open block."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from safewriter import SafeWriter
from soal.testing.s3.rules import Match, Rule
from tests.support.deadlines import FarDeadline, wait_for_watchdog
from tests.support.hygiene import wait_for_hygiene
from tests.support.neighbour import append_beside
from tests.support.network_faults import Late
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.support.lake import Lake

pytestmark = pytest.mark.spark

DELTA_CHECKPOINT = Match(operations={"PutObject"}, key_class="delta_log/checkpoint")


def append(spark: SparkSession, table: str, rows: int) -> None:
    spark.range(0, rows, 1, 1).write.format("delta").mode("append").save(table)


def elsewhere(work: Callable[[], Any]) -> None:
    """Run `work` as another job of this process: on a thread and a session without the block."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def outside(spark: SparkSession, statement: str) -> None:
    """Run a statement as another job would."""
    other = spark.newSession()
    other.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")  # VACUUM's listing: 10,000 tasks
    elsewhere(lambda: other.sql(statement).collect())


def test_optimize_beside_a_block_changes_nothing_for_it(spark: SparkSession, lake: Lake) -> None:
    """It takes the slot that the block intended; Delta rebases the append, through the gate."""
    for _ in range(3):
        append(spark, lake.table, 4)
    with SafeWriter(spark, lake.table) as block:
        outside(spark, f"OPTIMIZE delta.`{lake.table}`")
        append(spark, block.table, 5)
        block.success()
    assert lake.rows() == 17
    assert lake.operations()[-2:] == ["OPTIMIZE", "WRITE"]
    lake.check()


def test_what_optimize_has_rewritten_is_not_undone_and_said(spark: SparkSession, lake: Lake) -> None:
    """The block's rows are now in another writer's files: the write stays committed, with the reason."""
    append(spark, lake.table, 4)
    with pytest.raises(ZeroDivisionError) as raised, SafeWriter(spark, lake.table) as block:
        append(spark, block.table, 5)
        outside(spark, f"OPTIMIZE delta.`{lake.table}`")
        _ = 1 / 0
    document = lake.document()
    assert (document.status, lake.rows()) == ("committed", 9)
    assert document.undo_refused is not None
    assert document.undo_refused in raised.value.__notes__[0]
    lake.check()


def test_vacuum_beside_a_block_takes_nothing_of_it(spark: SparkSession, lake: Lake) -> None:
    """If the retention is longer than any open write, it deletes no file of the block."""
    append(spark, lake.table, 4)
    with SafeWriter(spark, lake.table, step="lands") as block:
        append(spark, block.table, 5)
        outside(spark, f"VACUUM delta.`{lake.table}` RETAIN 168 HOURS")
        block.success()
    assert spark.read.format("delta").load(lake.table).count() == 9
    lake.check()


def test_auto_compaction_waits_for_the_end_of_the_block(spark: SparkSession, lake: Lake) -> None:
    """It would be the block's second commit, and would prevent an undo; outside of the block it works as usual."""
    spark.sql(
        f"CREATE TABLE delta.`{lake.table}` (id BIGINT) USING delta TBLPROPERTIES ('delta.autoOptimize.autoCompact' ="
        " 'true')"
    )
    spark.conf.set("spark.databricks.delta.autoCompact.minNumFiles", "2")
    try:
        append(spark, lake.table, 4)
        with SafeWriter(spark, lake.table) as block:
            append(spark, block.table, 5)
            block.success()
        assert lake.operations() == ["CREATE TABLE", "WRITE", "WRITE"]
        append(spark, lake.table, 6)
        assert lake.operations()[3:] == ["WRITE", "OPTIMIZE"]
    finally:
        spark.conf.unset("spark.databricks.delta.autoCompact.minNumFiles")
    assert lake.rows() == 15


@pytest.mark.matrix
def test_deltas_own_checkpoint_is_past_the_commit_also_when_the_deadline_comes_in_it(
    spark: SparkSession, s3: EmbeddedS3, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta writes it after the commit, before the statement returns: the write is committed, and that in time."""
    spark.sql(
        f"CREATE TABLE delta.`{lake.table}` (id BIGINT) USING delta TBLPROPERTIES ('delta.checkpointInterval' = '1')"
    )
    far = FarDeadline.of(monkeypatch)
    late = Late(then="waits")
    rule = s3.wire.add(Rule(DELTA_CHECKPOINT, late))
    try:
        with SafeWriter(spark, lake.table) as block:

            def release() -> None:
                rule.fired(timeout_s=BUSY_S)
                far.come()
                wait_for_watchdog(block)
                seen.append(lake.document().status)
                late.release()

            seen: list[str] = []
            releaser = threading.Thread(target=release)
            releaser.start()
            try:
                append(spark, block.table, 5)
            finally:
                releaser.join(BUSY_S)
            block.success()
    finally:
        s3.wire.clear_rules()
    wait_for_hygiene()
    assert rule.hits == 1
    assert seen == ["committed"]
    assert lake.document().attempt.settled_by == "deadline"
    assert lake.rows() == 5
    lake.check()


def test_a_log_that_was_cleaned_behind_an_open_write_ends_unknown_and_never_committed(
    spark: SparkSession, lake: Lake
) -> None:
    """Versions since the claim are gone, so no settler can decide: the error asks a person to check."""
    append(spark, lake.table, 4)
    with pytest.raises(ZeroDivisionError) as raised, SafeWriter(spark, lake.table) as block:
        append(spark, block.table, 5)
        append_beside(lake, 6)
        lake.store.delete(f"_delta_log/{1:020}.json")
        _ = 1 / 0
    assert lake.document().status == "unknown"
    assert "set the verdict by hand" in raised.value.__notes__[0]
