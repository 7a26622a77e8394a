"""The watchdog on real Spark: where the deadline finds the block, and what it makes of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import safewriter
from safewriter import SafeWriter
from safewriter.deadline import Deadline, epoch_ms
from safewriter.journal import Journal
from tests.support.hygiene import wait_for_hygiene

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.lake import Lake

pytestmark = pytest.mark.spark

TOTAL_MS = 30_000
LEAD_MS = 24_000


@pytest.fixture
def begin(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let a deadline of `TOTAL_MS` begin now, so that the watchdog acts `TOTAL_MS - LEAD_MS` later."""

    def start() -> None:
        now_ms = epoch_ms()
        deadline = Deadline(now_ms + TOTAL_MS, now_ms + TOTAL_MS - 4 * LEAD_MS)  # the lead is a quarter of the whole
        monkeypatch.setattr(Deadline, "from_environment", classmethod(lambda _, __: deadline))

    return start


def base(spark: SparkSession, lake: Lake) -> None:
    spark.range(5).write.format("delta").save(lake.table)


def wait_for_watchdog(block: SafeWriter) -> None:
    assert block._watchdog is not None
    assert block._watchdog.fired.wait(2 * TOTAL_MS / 1000)
    assert block._watchdog.join(TOTAL_MS / 1000)


def test_a_write_that_sleeps_in_a_python_worker_is_cancelled_and_rolled_back(
    spark: SparkSession, lake: Lake, begin: Callable[[], None]
) -> None:
    """No fence and no file is left: the gate knows that nothing was sent, and the tasks have ended."""
    base(spark, lake)

    def sleep(number: int) -> int:
        time.sleep(60)
        return number

    frame = spark.range(0, 4, 1, 4).select(F.udf(sleep, "long", useArrow=False)("id").alias("id"))
    begin()
    with pytest.raises(safewriter.DeadlineError, match="rolled_back"), SafeWriter(spark, lake.table) as block:
        frame.write.format("delta").mode("append").save(block.table)
    wait_for_hygiene()
    assert lake.operations() == ["WRITE"]
    assert lake.orphans() == set()
    assert lake.document().status == "rolled_back"
    assert lake.markers(lake.document()) == ()


def test_a_write_that_sleeps_in_the_jvm_is_cancelled_and_rolled_back(
    spark: SparkSession, lake: Lake, begin: Callable[[], None]
) -> None:
    """The same without Python in the task."""
    base(spark, lake)
    sleeping = "id + 0 * length(reflect('java.lang.Thread', 'sleep', 60000L)) AS id"
    frame = spark.range(0, 4, 1, 4).selectExpr(sleeping)
    begin()
    with pytest.raises(safewriter.DeadlineError, match="rolled_back"), SafeWriter(spark, lake.table) as block:
        frame.write.format("delta").mode("append").save(block.table)
    wait_for_hygiene()
    assert lake.operations() == ["WRITE"]
    assert lake.orphans() == set()
    assert lake.document().status == "rolled_back"


def test_a_deadline_between_write_and_success_keeps_the_commit(
    spark: SparkSession, lake: Lake, begin: Callable[[], None]
) -> None:
    """With `commit_point="write"` the table's commit decides, and a late `success()` agrees."""
    base(spark, lake)
    begin()
    with SafeWriter(spark, lake.table) as block:
        spark.range(7).write.format("delta").mode("append").save(block.table)
        wait_for_watchdog(block)
        block.success()
    assert lake.rows() == 12
    assert lake.document().status == "committed"
    assert lake.document().attempt.settled_by == "deadline"
    lake.check()


def test_a_deadline_between_write_and_success_undoes_what_only_success_makes_count(
    spark: SparkSession, lake: Lake, begin: Callable[[], None]
) -> None:
    """With `commit_point="success"` the landed commit is undone, and a late `success()` fails."""
    base(spark, lake)
    begin()
    with pytest.raises(safewriter.DeadlineError), SafeWriter(spark, lake.table, commit_point="success") as block:
        spark.range(7).write.format("delta").mode("append").save(block.table)
        wait_for_watchdog(block)
        block.success()
    assert lake.rows() == 5
    assert lake.document().status == "rolled_back"
    lake.check()


def test_a_write_after_the_watchdog_is_refused(spark: SparkSession, lake: Lake, begin: Callable[[], None]) -> None:
    """The driver slept before its write: the gate is shut, nothing lands, and the verdict was true before."""
    base(spark, lake)
    begin()
    with pytest.raises(safewriter.DeadlineError), SafeWriter(spark, lake.table) as block:
        wait_for_watchdog(block)
        spark.range(7).write.format("delta").mode("append").save(block.table)
    assert lake.rows() == 5
    assert lake.document().status == "rolled_back"


def test_a_block_is_not_begun_after_the_lead_time(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too late is exit 75, with nothing claimed; the supervisor is told, since the error may lose its type."""
    journal = Journal(tmp_path / "journal")
    monkeypatch.setenv("SOAL_JOURNAL", str(tmp_path / "journal"))
    now_ms = epoch_ms()
    monkeypatch.setattr(Deadline, "from_environment", classmethod(lambda _, __: Deadline(now_ms + 1, now_ms - 10_000)))
    with pytest.raises(safewriter.TooLateError) as raised:
        SafeWriter(spark, lake.table).__enter__()
    assert raised.value.exit_code == 75
    assert lake.documents() == []
    with journal:
        events = [entry.event for entry in journal.entries()]
    assert events == [
        "journal_begun",
        "write_opened",
        "too_late",
        "write_closed",
    ]
