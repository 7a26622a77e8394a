"""Statements outside of a block that interfere with it: other threads, other sessions, and those that outlive it."""

from __future__ import annotations

import contextlib
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from pyspark import inheritable_thread_target

import safewriter
from safewriter import SafeWriter
from safewriter.block import ending
from safewriter.record.journal import Journal
from soal.testing.s3.rules import Match, Rule
from tests.support.attempts import next_attempt
from tests.support.hygiene import wait_for_hygiene
from tests.support.lake import CHECKPOINTS, LAKE, Lake
from tests.support.network_faults import Late
from tests.support.processes import Child
from tests.support.waiting import BUSY_S, until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from soal.testing.s3.exchange import Reply, Request

pytestmark = pytest.mark.spark


def append(spark: SparkSession, table: str, rows: int) -> None:
    spark.range(0, rows, 1, 1).write.format("delta").mode("append").save(table)


def delete(spark: SparkSession, table: str, _rows: int) -> None:
    spark.sql(f"DELETE FROM delta.`{table}`").collect()


def delete_some(spark: SparkSession, table: str, _rows: int) -> None:
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 1").collect()


def elsewhere(work: Callable[[], Any]) -> Any:
    """Run `work` on another thread of this process."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


@pytest.mark.parametrize("write", [append, pytest.param(delete, marks=pytest.mark.matrix)])
@pytest.mark.parametrize("session", ["the block's", "another"])
def test_another_thread_writes_nothing_to_a_table_with_an_open_block(
    spark: SparkSession, lake: Lake, write: Callable[[SparkSession, str, int], None], session: str
) -> None:
    """It might be the block's own code, whose rows would be doubled by the block's retry."""
    append(spark, lake.table, 5)
    other = spark if session == "the block's" else spark.newSession()
    with (
        pytest.raises(safewriter.NotCommittedError, match=r"not whole.*another thread"),
        SafeWriter(spark, lake.table) as block,
    ):
        with pytest.raises(Exception, match="another thread than the one that opened it"):
            elsewhere(lambda: write(other, lake.table, 7))
        append(spark, block.table, 3)
        block.success()
    wait_for_hygiene()
    assert (lake.rows(), lake.document().status) == (5, "rolled_back")
    write(other, lake.table, 7)
    assert lake.rows() == (12 if write is append else 0)
    lake.check()


def test_rows_that_a_refused_statement_did_not_write_are_missed_by_the_retry_too(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The block's DELETE stays, and its second statement is refused: a retry that skips both would hide the loss."""
    append(spark, lake.table, 5)
    with pytest.raises(safewriter.NotCommittedError, match="second"), SafeWriter(spark, lake.table) as block:
        delete_some(spark, block.table, 0)
        with contextlib.suppress(Exception):
            append(spark, block.table, 3)
        block.success()
    assert (lake.document().status, lake.rows()) == ("committed", 4)
    for _ in range(2):
        next_attempt(monkeypatch)
        with pytest.raises(safewriter.NotCommittedError, match="new clientToken"):
            SafeWriter(spark, lake.table).__enter__()
    assert lake.rows() == 4
    lake.check()


def test_a_block_whose_only_write_came_from_another_thread_fails_and_says_why(spark: SparkSession, lake: Lake) -> None:
    """Also when the script has caught the refusal: nothing was written, so nothing may be called committed."""
    append(spark, lake.table, 5)
    with pytest.raises(safewriter.NotCommittedError, match="another thread"), SafeWriter(spark, lake.table) as block:
        with pytest.raises(Exception, match="thread"):
            elsewhere(lambda: append(spark, lake.table, 7))
        block.success()
    assert (lake.rows(), lake.document().status) == (5, "rolled_back")


def test_two_blocks_in_two_threads_are_in_nobodys_way(spark: SparkSession, lake: Lake) -> None:
    """Each has a session of its own, and its commits pass its own gate."""
    append(spark, lake.table, 5)
    other = spark.newSession()

    def beside() -> None:
        with SafeWriter(other, lake.table, step="beside") as block:
            append(other, block.table, 7)
            block.success()

    with SafeWriter(spark, lake.table) as block:
        elsewhere(beside)
        append(spark, block.table, 3)
        block.success()
    assert lake.rows() == 15
    assert {document.status for document in lake.documents()} == {"committed"}


@pytest.mark.parametrize("job_group", [None, "the script's own"])
def test_a_frame_of_another_session_is_refused(spark: SparkSession, lake: Lake, job_group: str | None) -> None:
    """For example in foreachBatch, where the batch has a session of its own: the error names the session to use."""
    with (
        pytest.raises(safewriter.UnguardedSessionError, match=r"session of the statement"),
        SafeWriter(spark, lake.table) as block,
    ):
        if job_group is not None:
            spark.sparkContext.setJobGroup(job_group, "of the script")
        append(spark.newSession(), block.table, 10)
    wait_for_hygiene()
    assert lake.document().status == "rolled_back"
    assert lake.operations() == []
    other = spark.newSession()
    with SafeWriter(other, lake.table) as block:
        append(other, block.table, 10)
        block.success()
    assert lake.rows() == 10


@pytest.mark.parametrize("write", [pytest.param(append, marks=pytest.mark.matrix), delete_some])
@pytest.mark.parametrize("skipped", [pytest.param(False, marks=pytest.mark.matrix), True])
def test_a_statement_that_outlives_its_block_commits_nothing(
    spark: SparkSession,
    lake: Lake,
    s3: EmbeddedS3,
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[SparkSession, str, int], None],
    skipped: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """The guard recognises its execution, so also a DELETE that adds no file; the block's verdict holds without it."""
    append(spark, lake.table, 5)
    spark.sql(f"ALTER TABLE delta.`{lake.table}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    monkeypatch.setattr(ending, "_QUIET_S", 0.0)
    if skipped:
        with SafeWriter(spark, lake.table) as block:
            append(spark, block.table, 1)
            block.success()
        next_attempt(monkeypatch)
    before = lake.operations()
    late = Late(then="waits")  # in its tasks: it has begun
    errors: list[Exception] = []

    def run() -> None:
        try:
            write(spark.newSession(), lake.table, 7)
        except Exception as error:  # noqa: BLE001 - it is looked at below
            errors.append(error)

    writer = threading.Thread(target=run)
    try:
        with pytest.raises(ZeroDivisionError), SafeWriter(spark, lake.table) as block:
            assert block.already_committed is skipped
            s3.wire.add(Rule(Match(bucket=LAKE, key_class="data"), late))
            writer.start()
            assert until(lambda: len(late._held) == 1)
            s3.wire.clear_rules()
            _ = 1 / 0
    finally:
        late.release()
        writer.join(BUSY_S)
        s3.wire.clear_rules()
    wait_for_hygiene()
    assert "SafeWriter [over]" in str(errors[0])
    assert lake.operations() == before
    append(spark, lake.table, 2)  # statements that begin after the block are allowed
    lake.check()


def test_a_statement_that_outlives_a_success_ends_at_the_gate(
    spark: SparkSession, lake: Lake, s3: EmbeddedS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clean-up keeps its file, without which it would fail before the gate could inform the supervisor."""
    monkeypatch.setenv("SOAL_JOURNAL", str(tmp_path / "journal"))
    written, is_over = threading.Event(), threading.Event()

    def answer_late(request: Request) -> Callable[[], Reply]:
        reply = request.apply()
        written.set()

        def wait() -> Reply:
            assert is_over.wait(BUSY_S)
            return reply

        return wait

    try:
        with Journal(tmp_path / "journal") as journal, ThreadPoolExecutor(1) as pool:
            with SafeWriter(spark, lake.table) as block:
                append(spark, block.table, 3)
                s3.wire.add(Rule(Match(operations={"PutObject"}, bucket=LAKE, key_class="data"), answer_late))
                late = pool.submit(inheritable_thread_target(spark)(append), spark, block.table, 7)
                assert written.wait(BUSY_S)
                block.success()
            wait_for_hygiene()
            is_over.set()
            assert "SafeWriter [over]" in str(late.exception(BUSY_S))
            assert [entry.event for entry in journal.entries()][-3:] == [
                "write_closed",
                "block_outlived",
                "refused",
            ]
    finally:
        is_over.set()
        s3.wire.clear_rules()
    assert lake.rows() == 3
    lake.check()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param("SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')", marks=pytest.mark.matrix),
        "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "ADD COLUMNS (note STRING)",
    ],
)
def test_a_table_may_be_changed_after_a_block(spark: SparkSession, lake: Lake, change: str) -> None:
    """Row tracking adds all files again, also the block's, but they are no strays."""
    with SafeWriter(spark, lake.table) as block:
        append(spark, block.table, 5)
        block.success()
    spark.sql(f"ALTER TABLE delta.`{lake.table}` {change}")
    append(spark, lake.table, 2) if "ADD" not in change else None
    assert spark.read.format("delta").load(lake.table).count() == (7 if "ADD" not in change else 5)


def test_a_second_block_of_the_same_name_is_refused_whatever_process_has_the_first(
    spark: SparkSession, lake: Lake
) -> None:
    """A run that returns to a committed write is no retry: it has two blocks of one name."""
    with SafeWriter(spark, lake.table) as block:
        append(spark, block.table, 5)
        block.success()
    with pytest.raises(safewriter.StepError, match="step of its own"), SafeWriter(spark, lake.table):
        pass
    wait_for_hygiene()
    assert lake.markers(lake.document()) == ()
    with SafeWriter(spark, lake.table, step="second") as block:
        append(spark, block.table, 2)
        block.success()
    assert lake.rows() == 7


def test_a_skipped_block_skips_no_other_table(
    spark: SparkSession, lake: Lake, s3: EmbeddedS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta skips by a transaction that is set on the session, which other tables must not record."""
    other = Lake(s3.observer(), s3.endpoint, f"tables/{uuid.uuid4().hex}")
    for attempt in range(3):
        next_attempt(monkeypatch)
        with SafeWriter(spark, lake.table) as block:
            assert block.already_committed is (attempt > 0)
            append(spark, block.table, 3)
            append(spark, other.table, 10)
            append(spark, other.table, 100)
            block.success()
    assert (lake.rows(), other.rows()) == (3, 330)
    assert [action for commit in other.commits() for action in commit if "txn" in action] == []


def test_a_write_to_another_table_that_began_in_a_block_may_end_after_it(
    spark: SparkSession, lake: Lake, s3: EmbeddedS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files have the block's prefix, since they are of its session, but they are not in the block's table."""
    other = Lake(s3.observer(), s3.endpoint, f"tables/{uuid.uuid4().hex}")
    append(spark, other.table, 1)
    monkeypatch.setattr(ending, "_QUIET_S", 0.0)
    late = Late(then="waits")
    with SafeWriter(spark, lake.table) as block:
        append(spark, block.table, 3)
        s3.wire.add(Rule(Match(bucket=LAKE, key=other.name, key_class="data"), late))
        writer = threading.Thread(target=append, args=(spark, other.table, 7))
        writer.start()
        assert until(lambda: len(late._held) == 1)
        block.success()
    late.release()
    writer.join(BUSY_S)
    s3.wire.clear_rules()
    assert (lake.rows(), other.rows()) == (3, 8)


def test_a_spark_that_is_restarted_in_a_block_writes_nothing_there(lake: Lake, s3: EmbeddedS3) -> None:
    """The block fails with the reason; its retry writes the rows once."""
    environment = {**s3.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS}
    job = Child("tests.integration.safewriter.restarting_job", lake.table, environment=environment)
    try:
        assert job.end() == 0, job.said()
    finally:
        job.kill()
    (failed,) = (line for line in job.lines if line.startswith("failed: "))
    assert failed.startswith("failed: UnguardedSessionError: this write comes from the block's own code")
    assert "the retry finds it committed: False" in job.lines
    assert (lake.rows(), lake.document().status, lake.document().epoch) == (13, "committed", 2)
    lake.check()
