"""SafeWriter blocks on real Delta tables: what ends how, and what a reader that is not Spark then sees."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import safewriter
from safewriter import SafeWriter
from safewriter.deadline import epoch_ms
from safewriter.objects.s3 import table_store
from safewriter.record.journal import Journal
from safewriter.settle.recovery import Cause, Recovery
from scripts.emulator.rules import Match, Rule
from tests.support.attempts import next_attempt
from tests.support.hygiene import wait_for_hygiene
from tests.support.neighbour import append_beside

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from scripts.emulator.exchange import Reply, Request
    from scripts.emulator.s3 import EmbeddedS3
    from tests.support.lake import Lake

pytestmark = pytest.mark.spark


def batch(spark: SparkSession, rows: int = 10) -> DataFrame:
    return spark.range(rows).withColumn("part", F.col("id") % 3)


def append(spark: SparkSession, lake: Lake, rows: int = 10, step: str | None = None) -> SafeWriter:
    with SafeWriter(spark, lake.table, step=step) as block:
        batch(spark, rows).write.format("delta").mode("append").save(block.table)
        block.success()
    return block


def test_a_create_and_an_append_land_once_and_are_on_record(spark: SparkSession, lake: Lake) -> None:
    """Two blocks leave two versions, two committed documents with their figures, no marker, no lease, no note."""
    append(spark, lake, 10, "one")
    append(spark, lake, 5, "two")
    wait_for_hygiene()
    assert lake.rows() == 15
    assert lake.operations() == ["WRITE", "WRITE"]
    documents = {document.step: document for document in lake.documents()}
    assert {step: document.status for step, document in documents.items()} == {"one": "committed", "two": "committed"}
    assert documents["one"].attempt.version_before == -1
    assert (documents["two"].attempt.commit_version, documents["two"].attempt.rows) == (1, 5)
    assert all(lake.markers(document) == () for document in documents.values())
    assert not [key for key in lake.checkpoints.store.list("notes/") if documents["one"].write_key in key.key]
    lake.check()


def test_an_exception_undoes_exactly_our_commit(spark: SparkSession, lake: Lake) -> None:
    """The user's exception goes on unchanged; a commit of somebody else that came behind ours stays."""
    append(spark, lake, 10, "base")
    with pytest.raises(ZeroDivisionError), SafeWriter(spark, lake.table, step="fails") as block:
        batch(spark, 7).write.format("delta").mode("append").save(block.table)
        append_beside(lake, 4)
        _ = 1 / 0
    assert lake.rows() == 14
    assert lake.operations() == ["WRITE", "WRITE", "WRITE", "SAFEWRITER REVERT"]
    assert block.checkpoint is not None
    assert block.checkpoint.status == "rolled_back"
    assert spark.read.format("delta").load(lake.table).count() == 14
    append(spark, lake, 1, "after")  # Spark goes on from there
    assert lake.rows() == 15
    lake.check()


def test_a_block_that_is_left_without_success_leaves_nothing(spark: SparkSession, lake: Lake) -> None:
    """Undoing a creation leaves an empty table, and the verdict says so."""
    with SafeWriter(spark, lake.table) as block:
        batch(spark).write.format("delta").mode("append").save(block.table)
    assert lake.rows() == 0
    document = lake.document()
    assert document.status == "rolled_back"
    assert "an empty table remains" in str(document.reason)
    lake.check()


def test_an_exception_before_the_write_leaves_no_trace_in_the_table(spark: SparkSession, lake: Lake) -> None:
    """Nothing was sent, so no fence is needed: the table does not even exist."""
    with pytest.raises(RuntimeError), SafeWriter(spark, lake.table):
        raise RuntimeError
    wait_for_hygiene()
    assert lake.keys() == set()
    assert lake.document().status == "rolled_back"
    assert lake.markers(lake.document()) == ()


def test_an_exception_after_success_undoes_nothing(spark: SparkSession, lake: Lake) -> None:
    """What was declared a success stays one."""
    with pytest.raises(RuntimeError), SafeWriter(spark, lake.table) as block:
        batch(spark).write.format("delta").mode("append").save(block.table)
        block.success()
        raise RuntimeError
    assert lake.rows() == 10
    assert lake.document().status == "committed"


def test_a_committed_write_is_skipped_on_a_retry_however_the_script_goes_about_it(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`already_committed` says so; a write that is made all the same lands nowhere; the one-line form skips by
    itself.
    """
    append(spark, lake)
    next_attempt(monkeypatch)
    with SafeWriter(spark, lake.table) as block:
        assert block.already_committed
        batch(spark).write.format("delta").mode("append").save(block.table)
        block.success()
    next_attempt(monkeypatch)
    document = safewriter.save(batch(spark).write.mode("append"), lake.table)
    wait_for_hygiene()
    assert document.status == "committed"
    assert lake.rows() == 10
    assert lake.operations() == ["WRITE"]
    assert lake.orphans() == set()
    assert lake.markers(lake.document()) == ()


def test_a_retry_may_change_what_the_first_attempt_had_no_need_to(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attempt without a change leaves nothing in the table, so a later one of the same run writes, once."""
    with SafeWriter(spark, lake.table) as block:
        block.success()
    assert str(lake.document().reason).startswith("no change")
    for skipped in (False, True):
        next_attempt(monkeypatch)
        with SafeWriter(spark, lake.table) as block:
            assert block.already_committed is skipped
            if not skipped:
                batch(spark).write.format("delta").mode("append").save(block.table)
            block.success()
    assert (lake.document().status, lake.document().epoch, lake.rows()) == ("committed", 2, 10)


def test_the_one_line_form_does_the_whole_thing(spark: SparkSession, lake: Lake) -> None:
    """A writer with all its options goes in, the document comes out."""
    document = safewriter.save(batch(spark).write.mode("append").partitionBy("part"), lake.table)
    assert (document.status, document.attempt.rows) == ("committed", 10)
    assert lake.rows() == 10


def test_a_second_commit_in_one_block_is_refused_and_the_first_is_undone(spark: SparkSession, lake: Lake) -> None:
    """A block holds one commit; the error makes the block fail as a whole."""
    with pytest.raises(safewriter.UnsupportedError, match="one commit"), SafeWriter(spark, lake.table) as block:
        batch(spark).write.format("delta").mode("append").save(block.table)
        spark.sql(f"DELETE FROM delta.`{lake.table}` WHERE id = 1")
        block.success()
    assert lake.rows() == 0
    lake.check()


def test_the_users_own_transaction_options_are_kept_beside_ours(spark: SparkSession, lake: Lake) -> None:
    """Delta knows the user's transaction; the guard finds its own in the same commit."""
    own = batch(spark).write.format("delta").mode("append").option("txnAppId", "mine").option("txnVersion", "7")
    with SafeWriter(spark, lake.table) as block:
        own.save(block.table)
        block.success()
    transactions = {action["txn"]["appId"]: action["txn"]["version"] for action in lake.commits()[0] if "txn" in action}
    assert transactions == {"mine": 7, lake.document().write_key: 1}
    assert lake.document().status == "committed"


def test_a_write_after_success_is_refused(spark: SparkSession, lake: Lake) -> None:
    """What was declared a success, here "no change", does not change any more."""
    append(spark, lake, 5, "base")
    with pytest.raises(Exception, match="success\\(\\) was called"), SafeWriter(spark, lake.table, step="n") as block:
        block.success()
        batch(spark).write.format("delta").mode("append").save(block.table)
    assert lake.rows() == 5
    lake.check()


def test_a_refusal_that_the_script_has_handled_does_not_hide_its_own_error(spark: SparkSession, lake: Lake) -> None:
    """The exception that ends the block is the one that is seen."""
    append(spark, lake, 5, "base")
    with pytest.raises(ZeroDivisionError), SafeWriter(spark, lake.table, step="n") as block:
        with contextlib.suppress(Exception):
            batch(spark).write.format("delta").mode("overwrite").save(block.table)
        _ = 1 / 0


def test_what_a_try_has_left_that_lost_and_was_made_again_in_the_block_is_removed(
    spark: SparkSession, lake: Lake, s3: EmbeddedS3
) -> None:
    """The script catches the conflict and writes again: the commit names the second try's files only."""
    append(spark, lake, 5, "base")

    def lose(request: Request) -> Reply:
        (metadata,) = [action for action in lake.commits()[0] if "metaData" in action]
        metadata["metaData"]["description"] = "changed meanwhile"
        info = {"commitInfo": {"timestamp": epoch_ms(), "operation": "FOREIGN", "operationParameters": {}}}
        body = "\n".join(json.dumps(action) for action in (info, metadata))
        lake.store.create(f"_delta_log/{1:020}.json", body.encode())
        return request.apply()

    s3.wire.add(Rule(Match(operations={"PutObject"}, key=f"{lake.name}/_delta_log/{1:020}.json"), lose))
    with SafeWriter(spark, lake.table) as block:
        with pytest.raises(Exception, match="DELTA_METADATA_CHANGED"):
            batch(spark).write.format("delta").mode("append").save(block.table)
        batch(spark).write.format("delta").mode("append").save(block.table)
        block.success()
    wait_for_hygiene()
    assert lake.orphans() == set()
    assert lake.rows() == 15
    lake.check()


def test_a_creation_that_was_undone_is_not_taken_for_the_batch(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ignore` finds the empty table and writes nothing: that is no "no change"; `append` brings the batch in."""
    with pytest.raises(RuntimeError), SafeWriter(spark, lake.table) as block:
        batch(spark).write.format("delta").mode("ignore").save(block.table)
        raise RuntimeError
    with pytest.raises(safewriter.NotCommittedError, match="append"), SafeWriter(spark, lake.table) as block:
        batch(spark).write.format("delta").mode("ignore").save(block.table)
        block.success()
    with pytest.raises(Exception, match="DELTA_PATH_EXISTS") as raised, SafeWriter(spark, lake.table) as block:
        batch(spark).write.format("delta").save(block.table)
    assert any("append to it" in note for note in raised.value.__notes__)
    append(spark, lake)
    assert lake.rows() == 10
    lake.check()


def test_a_block_is_entered_once_and_succeeds_inside(spark: SparkSession, lake: Lake) -> None:
    """A second entry and a late `success()` are errors of the caller, and change nothing."""
    block = append(spark, lake)
    with pytest.raises(safewriter.UsageError, match="once"):
        block.__enter__()
    with SafeWriter(spark, lake.table, step="two") as other:
        pass
    with pytest.raises(safewriter.UsageError, match="inside"):
        other.success()
    assert lake.rows() == 10


def test_a_path_that_spark_reads_otherwise_is_refused(spark: SparkSession, lake: Lake) -> None:
    """Hadoop resolves dots and S3 does not."""
    with pytest.raises(safewriter.UnsupportedError, match=r"'\.\.'"):
        SafeWriter(spark, f"{lake.table}/../other")


def test_a_fence_that_the_writer_did_not_see_stops_it(spark: SparkSession, lake: Lake) -> None:
    """Settled behind its back, before Delta takes its snapshot: the gate looks at every version since the claim."""
    append(spark, lake, 5, "base")
    with pytest.raises(safewriter.SupersededError), SafeWriter(spark, lake.table, step="late") as block:
        assert block.checkpoint is not None
        Recovery(lake.checkpoints, table_store, clock=epoch_ms).settle(block.checkpoint.write_key, Cause.RETRY)
        batch(spark).write.format("delta").mode("append").save(block.table)
        block.success()
    wait_for_hygiene()
    assert lake.operations() == ["WRITE", "SAFEWRITER FENCE"]
    assert lake.orphans() == set()
    lake.check()


def test_a_block_that_writes_another_table_is_not_a_success(spark: SparkSession, lake: Lake) -> None:
    """The guard says which table was written instead of the guarded one."""
    with pytest.raises(safewriter.NotCommittedError, match="elsewhere"), SafeWriter(spark, lake.table) as block:
        batch(spark).write.format("delta").mode("append").save(f"{lake.table}-elsewhere")
        block.success()
    assert lake.document().status == "rolled_back"


def test_a_block_without_a_write_is_committed_as_no_change(spark: SparkSession, lake: Lake) -> None:
    """There was nothing to do, and that was done."""
    append(spark, lake, 10, "one")
    with SafeWriter(spark, lake.table, step="nothing") as block:
        block.success()
    assert block.checkpoint is not None
    assert (block.checkpoint.status, block.checkpoint.reason) == ("committed", "no change: the block made no commit")
    assert lake.operations() == ["WRITE"]


def test_two_blocks_on_one_table_need_a_step(spark: SparkSession, lake: Lake) -> None:
    """An ordinal would match other data on a retry; a block that left nothing may be tried again."""
    with pytest.raises(RuntimeError), SafeWriter(spark, lake.table):
        raise RuntimeError
    append(spark, lake)
    with pytest.raises(safewriter.StepError, match="step"):
        append(spark, lake)
    append(spark, lake, step="second")
    assert lake.rows() == 20


def test_one_block_may_be_open_on_a_session(spark: SparkSession, lake: Lake) -> None:
    """The second is refused before it does anything; the first goes on."""
    with SafeWriter(spark, lake.table) as block:
        with pytest.raises(safewriter.BlockOpenError):
            SafeWriter(spark, f"{lake.table}-other").__enter__()
        batch(spark).write.format("delta").mode("append").save(block.table)
        block.success()
    assert lake.rows() == 10


def test_an_interrupt_at_the_very_end_of_a_block_leaves_the_session_free(spark: SparkSession, lake: Lake) -> None:
    """In a notebook the next block comes on the same session."""

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), SafeWriter(spark, lake.table) as block:
        block._block.session.on_restore(interrupted)  # type: ignore[attr-defined]
    append(spark, lake)
    assert lake.rows() == 10


def test_the_session_is_put_back_as_it_was(spark: SparkSession, lake: Lake) -> None:
    """After success and after an error; the user's own metadata is kept inside ours."""
    key, txn = "spark.databricks.delta.commitInfo.userMetadata", "spark.databricks.delta.write.txnAppId"
    spark.conf.set(key, "nightly load")
    try:
        append(spark, lake)
        with pytest.raises(RuntimeError), SafeWriter(spark, lake.table, step="fails"):
            raise RuntimeError
        assert spark.conf.get(key) == "nightly load"
        assert spark.conf.get(txn, None) is None
        assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None
        batch(spark).write.format("delta").mode("append").save(lake.table)
    finally:
        spark.conf.unset(key)
    (info,) = [action["commitInfo"] for action in lake.commits()[0] if "commitInfo" in action]
    assert json.loads(info["userMetadata"])["user"] == "nightly load"
    (unguarded,) = [action["commitInfo"] for action in lake.commits()[1] if "commitInfo" in action]
    assert unguarded["userMetadata"] == "nightly load"
    assert not any("txn" in action for action in lake.commits()[1])


def test_files_of_a_failed_job_are_removed_from_every_partition(spark: SparkSession, lake: Lake) -> None:
    """A task fails after others have written: the table is unchanged, and nothing of ours lies about."""
    append(spark, lake, 9, "base")
    fails = F.udf(lambda number: 1 // (number - 8), "long")
    frame = spark.range(0, 9, 1, 9).withColumn("part", F.col("id") % 3).withColumn("id", fails("id"))
    with pytest.raises(Exception, match="ZeroDivisionError"), SafeWriter(spark, lake.table, step="fails") as block:
        frame.write.format("delta").mode("append").save(block.table)
    wait_for_hygiene()
    assert lake.rows() == 9
    assert lake.orphans() == set()
    assert block.checkpoint is not None
    assert lake.markers(block.checkpoint) == ()


def test_a_supervised_block_tells_its_journal_first(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opened, before anything is on S3; passed, before the commit is sent; closed."""
    monkeypatch.setenv("SOAL_JOURNAL", str(tmp_path / "journal"))
    with Journal(tmp_path / "journal") as journal:
        append(spark, lake)
        _, *entries = journal.entries()
    assert [entry.event for entry in entries] == ["write_opened", "commit_passed", "write_closed"]
    assert len({entry.fields["nonce"] for entry in entries}) == 1


def test_without_its_journal_a_block_is_refused_before_it_does_anything(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The supervisor would not learn of the write; the error says so, and nothing is on S3."""
    monkeypatch.setenv("SOAL_JOURNAL", str(tmp_path / "journal"))
    with pytest.raises(safewriter.UsageError, match=r"nothing was written: the journal .* is gone"):
        append(spark, lake)
    assert lake.documents() == []
    assert list(tmp_path.iterdir()) == []


def test_a_commit_is_refused_once_the_journal_is_gone(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The supervisor takes a missing line for a commit that was never sent, so none is sent without it."""
    path = tmp_path / "journal"
    monkeypatch.setenv("SOAL_JOURNAL", str(path))
    with Journal(path) as journal:
        with pytest.raises(Exception, match="NoSuchFileException"), SafeWriter(spark, lake.table) as sw:
            path.unlink()
            spark.range(3).write.format("delta").mode("append").save(sw.table)
            sw.success()
        assert [entry.event for entry in journal.entries()] == ["journal_begun", "write_opened"]
    assert not path.exists()
    assert [document.status for document in lake.documents()] == ["rolled_back"]


def test_a_session_without_the_log_store_is_refused_with_the_two_lines(spark: SparkSession, lake: Lake) -> None:
    """The scheme s3n has no log store of ours here, and the guard does not believe that it has."""
    with pytest.raises(safewriter.UnguardedSessionError, match=r"spark\.delta\.logStore\.s3n\.impl.*\n.*spark.jars"):
        SafeWriter(spark, lake.table.replace("s3a://", "s3n://")).__enter__()
    assert lake.documents() == []


def test_an_append_only_table_cannot_promise_an_undo(spark: SparkSession, lake: Lake) -> None:
    """`commit_point="success"` is refused before the write; an exception ends committed, loudly."""
    spark.sql(f"CREATE TABLE delta.`{lake.table}` (id LONG) USING delta TBLPROPERTIES ('delta.appendOnly' = 'true')")
    with pytest.raises(safewriter.UnsupportedError, match="append-only"):
        SafeWriter(spark, lake.table, commit_point="success").__enter__()
    with pytest.raises(RuntimeError) as raised, SafeWriter(spark, lake.table, step="two") as block:
        spark.range(5).write.format("delta").mode("append").save(block.table)
        raise RuntimeError
    assert block.checkpoint is not None
    assert (block.checkpoint.status, block.checkpoint.undo_refused) == ("committed", "the table is append-only")
    assert any("append-only" in note for note in raised.value.__notes__)
    assert lake.rows() == 5


FEATURES = {
    "plain": "",
    "change data feed": "'delta.enableChangeDataFeed' = 'true'",
    "in-commit timestamps": "'delta.enableInCommitTimestamps' = 'true'",
    "row tracking": "'delta.enableRowTracking' = 'true'",
    "column mapping": "'delta.columnMapping.mode' = 'name'",
    "deletion vectors": "'delta.enableDeletionVectors' = 'true'",
    "v2 checkpoints": "'delta.checkpointPolicy' = 'v2'",
}


@pytest.mark.parametrize("properties", FEATURES.values(), ids=FEATURES.keys())
def test_an_undo_is_right_under_every_table_feature_that_allows_one(
    spark: SparkSession, lake: Lake, properties: str
) -> None:
    """Spark reads the same rows as before, its history is whole, and it goes on appending and deleting."""
    table = f"delta.`{lake.table}`"
    with_properties = f"TBLPROPERTIES ({properties})" if properties else ""
    spark.sql(f"CREATE TABLE {table} (id LONG, part LONG) USING delta PARTITIONED BY (part) {with_properties}")
    append(spark, lake, 6, "base")
    with pytest.raises(RuntimeError), SafeWriter(spark, lake.table, step="fails") as block:
        batch(spark, 20).write.format("delta").mode("append").save(block.table)
        raise RuntimeError
    assert block.checkpoint is not None
    assert (block.checkpoint.status, block.checkpoint.undo_refused) == ("rolled_back", None)
    assert spark.read.format("delta").load(lake.table).count() == 6
    append(spark, lake, 6, "after")
    spark.sql(f"DELETE FROM {table} WHERE id = 0")
    assert spark.read.format("delta").load(lake.table).count() == 10
    operations = [row.operation for row in spark.sql(f"DESCRIBE HISTORY {table}").collect()]
    assert operations == ["DELETE", "WRITE", "SAFEWRITER REVERT", "WRITE", "WRITE", "CREATE TABLE"]
    lake.check()
