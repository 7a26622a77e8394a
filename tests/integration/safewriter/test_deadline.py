"""The watchdog on real Spark: a deadline at different points of the block, and the verdict."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import safewriter
from safewriter import SafeWriter
from safewriter.deadline import Deadline, epoch_ms
from safewriter.record.journal import Journal
from tests.support.deadlines import FarDeadline, tasks_run, wait_for_watchdog
from tests.support.hygiene import wait_for_hygiene

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.lake import Lake

pytestmark = pytest.mark.spark


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> FarDeadline:
    return FarDeadline.of(monkeypatch)


def base(spark: SparkSession, lake: Lake) -> None:
    spark.range(5).write.format("delta").save(lake.table)


def test_a_write_that_sleeps_in_a_python_worker_is_cancelled_and_rolled_back(
    spark: SparkSession, lake: Lake, far: FarDeadline
) -> None:
    """No fence and no file is left: the gate knows that nothing was sent, and the tasks have ended."""
    base(spark, lake)

    def sleep(number: int) -> int:
        time.sleep(600)
        return number

    frame = spark.range(0, 4, 1, 4).select(F.udf(sleep, "long", useArrow=False)("id").alias("id"))
    with pytest.raises(safewriter.DeadlineError, match="rolled_back"), SafeWriter(spark, lake.table) as block:
        far.come_when(lambda: tasks_run(spark, 4))
        frame.write.format("delta").mode("append").save(block.table)
    wait_for_hygiene()
    assert lake.operations() == ["WRITE"]
    assert lake.orphans() == set()
    assert lake.document().status == "rolled_back"
    assert lake.markers(lake.document()) == ()


def test_a_write_that_computes_in_the_jvm_is_cancelled_and_rolled_back(
    spark: SparkSession, lake: Lake, far: FarDeadline
) -> None:
    """The same without Python in the task."""
    base(spark, lake)
    frame = spark.range(0, 10**15, 1, 4).where("id < 0")
    with pytest.raises(safewriter.DeadlineError, match="rolled_back"), SafeWriter(spark, lake.table) as block:
        far.come_when(lambda: tasks_run(spark, 4))
        frame.write.format("delta").mode("append").save(block.table)
    wait_for_hygiene()
    assert lake.operations() == ["WRITE"]
    assert lake.orphans() == set()
    assert lake.document().status == "rolled_back"


def test_a_deadline_between_write_and_success_keeps_the_commit(
    spark: SparkSession, lake: Lake, far: FarDeadline
) -> None:
    """With `commit_point="write"` the table's commit decides, and a late `success()` agrees."""
    base(spark, lake)
    with SafeWriter(spark, lake.table) as block:
        spark.range(7).write.format("delta").mode("append").save(block.table)
        far.come()
        wait_for_watchdog(block)
        block.success()
    assert lake.rows() == 12
    assert lake.document().status == "committed"
    assert lake.document().attempt.settled_by == "deadline"
    lake.check()


def test_a_deadline_between_write_and_success_undoes_what_only_success_makes_count(
    spark: SparkSession, lake: Lake, far: FarDeadline
) -> None:
    """With `commit_point="success"` the landed commit is undone, and a late `success()` fails."""
    base(spark, lake)
    with pytest.raises(safewriter.DeadlineError), SafeWriter(spark, lake.table, commit_point="success") as block:
        spark.range(7).write.format("delta").mode("append").save(block.table)
        far.come()
        wait_for_watchdog(block)
        block.success()
    assert lake.rows() == 5
    assert lake.document().status == "rolled_back"
    lake.check()


def test_a_write_after_the_watchdog_is_refused(spark: SparkSession, lake: Lake, far: FarDeadline) -> None:
    """The driver slept before its write: the gate is shut, nothing lands, and the verdict stays true."""
    base(spark, lake)
    with pytest.raises(safewriter.DeadlineError), SafeWriter(spark, lake.table) as block:
        far.come()
        wait_for_watchdog(block)
        spark.range(7).write.format("delta").mode("append").save(block.table)
    assert lake.rows() == 5
    assert lake.document().status == "rolled_back"


def test_a_block_is_not_begun_after_the_lead_time(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 75, with nothing claimed; the journal tells the supervisor, since the error may lose its type."""
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
        "not_entered",
    ]
