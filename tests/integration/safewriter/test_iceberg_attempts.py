"""A block on an Iceberg table and its write's other attempts, dead or fenced off."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

import pytest

from safewriter import ConflictError, DeadlineError, SafeWriter, writer
from safewriter.deadline import epoch_ms
from safewriter.objects.s3 import S3ObjectStore
from safewriter.record.journal import Journal
from safewriter.settings import Settings
from safewriter.settle.recovery import Cause
from safewriter.settle.supervisor import Supervision
from soal.testing.s3 import Match, Rule
from tests.integration.safewriter.ice_rows import AbandonedError, append, ids, session_of
from tests.support.attempts import next_attempt
from tests.support.deadlines import FarDeadline, wait_for_watchdog
from tests.support.hygiene import wait_for_hygiene
from tests.support.network_faults import Freeze

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.support.ice import Ice
    from tests.support.lake import Lake

pytestmark = [pytest.mark.spark]


def test_a_committed_write_is_skipped(spark: SparkSession, ice: Ice, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second attempt of the run lands nowhere, whatever it writes."""
    with SafeWriter(spark, ice.name, format="iceberg", step="one") as block:
        append(spark, block.table, 5, 8)
        block.success()
    before = ice.load().metadata_location
    next_attempt(monkeypatch)
    with SafeWriter(spark, ice.name, format="iceberg", step="one") as again:
        assert again.already_committed
        append(spark, again.table, 5, 8)
        spark.sql(f"UPDATE {again.table} SET id = id + 100 WHERE id = 7")
        append(spark, again.table, 8, 9)
        assert ids(spark, again.table) == list(range(8)), "what is derived from it is right in the retry, too"
        again.success()
    assert ids(spark, ice.name) == list(range(8))
    assert ice.load().metadata_location == before
    wait_for_hygiene()
    assert ice.documents()[0].attempt.epoch == 1
    assert not [one for one in ice.orphans() if "/data/" in one]


def test_a_retry_skips_what_the_table_holds_though_its_document_is_gone(
    spark: SparkSession, ice: Ice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint bucket was emptied; the table's metadata names the attempt."""
    for attempt in range(2):
        with SafeWriter(spark, ice.name, format="iceberg") as block:
            assert block.already_committed is (attempt > 0)
            append(spark, block.table, 5, 8)
            block.success()
        if attempt == 0:
            wait_for_hygiene()
            ice.checkpoints.store.delete(f"checkpoints/{ice.document().write_key}.json")
            next_attempt(monkeypatch)
    assert ids(spark, ice.name) == list(range(8))
    assert ice.document().reason == "retry: the table holds it, and its document was gone"


@pytest.mark.matrix
def test_a_retry_skips_what_is_published_though_its_snapshot_is_expired(
    spark: SparkSession, s3: EmbeddedS3, ice: Ice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process died before it could report; the mark outlives the snapshot."""
    block = SafeWriter(spark, ice.name, format="iceberg").__enter__()
    append(spark, block.table, 5, 8)
    block._block.session.publish()
    _leave(spark, block)
    append(spark, ice.name, 20, 21)
    catalog, _, table = ice.name.partition(".")
    spark.sql(f"CALL {catalog}.system.expire_snapshots(table => '{table}', older_than => now(), retain_last => 1)")
    assert len(ice.history()) == 1

    monkeypatch.setattr(s3.wire, "clock_ahead_s", 30)  # the dead attempt's lease has expired
    next_attempt(monkeypatch)
    with SafeWriter(spark, ice.name, format="iceberg") as again:
        assert again.already_committed
    assert ice.document().status == "committed"
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4, 5, 6, 7, 20]


def test_a_block_that_was_fenced_off_while_it_stood_still_publishes_nothing(
    spark: SparkSession, ice: Ice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its retry has taken the write over, and the table holds the batch once."""
    block = SafeWriter(spark, ice.name, format="iceberg").__enter__()
    append(spark, block.table, 5, 8)
    document = ice.document()
    block._block.recovery.settle(document.write_key, Cause.KILLED)
    assert ice.document().status == "rolled_back"
    writer._registry.close(spark, block._block.write)  # the retry is another process
    next_attempt(monkeypatch)
    other = session_of(spark, ice)
    with SafeWriter(other, ice.name, format="iceberg") as again:
        append(other, again.table, 5, 8)
        again.success()
    with pytest.raises(ConflictError, match="settled this attempt as rolled back"):
        block.success()
    block.__exit__(None, None, None)
    assert ids(spark, ice.name) == list(range(8))
    ice.check()


@pytest.mark.parametrize("ice", ["rest"], indirect=True)
def test_a_publication_that_is_on_its_way_fails_on_a_fence(spark: SparkSession, s3: EmbeddedS3, ice: Ice) -> None:
    """A REST server compares only a commit's requirements; and the fence does not change main."""
    with (
        pytest.raises(ConflictError, match="settled this attempt as rolled back"),
        SafeWriter(spark, ice.name, format="iceberg") as block,
    ):
        append(spark, block.table, 5, 8)
        key = ice.document().write_key

        def settle() -> None:
            block._block.recovery.settle(key, Cause.KILLED)

        s3.wire.add(Rule(Match(operations={"CatalogChange"}), Freeze(settle)))
        block.success()
    s3.wire.clear_rules()
    assert ice.document().status == "rolled_back"
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4]
    ice.check()


def test_a_publication_that_begins_too_late_is_refused(spark: SparkSession, ice: Ice) -> None:
    """The JVM's clock decides, however long the process has slept since it announced the publication."""
    with pytest.raises(ConflictError, match="too late"), SafeWriter(spark, ice.name, format="iceberg") as block:
        session: Any = block._block.session
        session.restore()
        session._open(ice.document().attempt.prefix.rstrip("-"), ice.document().attempt.table_id, epoch_ms() - 1)
        append(spark, block.table, 5, 8)
        block.success()
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4]


def _leave(spark: SparkSession, block: SafeWriter) -> None:
    """Leave a block like a killed process."""
    block._block.session.restore()
    writer._registry.close(spark, block._block.write)
    if block._heartbeat is not None:
        block._heartbeat.stop()


@pytest.mark.parametrize("published", [True, False])
def test_a_supervisor_tells_the_truth_about_a_dead_child(
    spark: SparkSession, ice: Ice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, published: bool
) -> None:
    """Published rows count, staged ones do not; the catalog shows it, without Spark."""
    path = tmp_path / "journal"
    journal = Journal(path)
    supervision = Supervision(journal, Settings.from_environment(os.environ))
    monkeypatch.setenv("SOAL_JOURNAL", str(path))
    if (password := ice.catalog.spark.get("jdbc.password")) is not None:
        monkeypatch.setenv("PGPASSWORD", password)  # which no checkpoint holds
    block = SafeWriter(spark, ice.name, format="iceberg").__enter__()
    append(spark, block.table, 5, 8)
    if published:
        block._block.session.publish()
    _leave(spark, block)
    with journal:
        (report,) = supervision.settle(budget_ms=60_000)
    told = ("committed", 3, "iceberg") if published else ("rolled_back", None, "iceberg")
    assert (report.status, report.rows, report.format) == told
    assert len(ids(spark, ice.name)) == (8 if published else 5)
    ice.check()


@pytest.mark.parametrize("commit_point", ["write", pytest.param("success", marks=pytest.mark.matrix)])
def test_a_deadline_drops_what_is_staged(
    spark: SparkSession, ice: Ice, monkeypatch: pytest.MonkeyPatch, commit_point: Literal["write", "success"]
) -> None:
    """The watchdog settles while the block still runs: only `success()` publishes."""
    far = FarDeadline.of(monkeypatch)
    with (
        pytest.raises(DeadlineError),
        SafeWriter(spark, ice.name, format="iceberg", commit_point=commit_point) as block,
    ):
        append(spark, block.table, 5, 8)
        far.come()
        wait_for_watchdog(block)
        raise AbandonedError
    assert len(ids(spark, ice.name)) == 5
    wait_for_hygiene()
    ice.check()


@pytest.mark.matrix
def test_each_batch_of_a_stream_is_a_write_of_its_own(spark: SparkSession, ice: Ice, lake: Lake) -> None:
    """A batch that is delivered again is skipped."""
    source = f"{lake.table}-source"
    spark.range(5, 8, 1, 1).write.format("delta").save(source)

    def write(frame: DataFrame, _: int) -> None:
        with SafeWriter(frame.sparkSession, ice.name, format="iceberg") as block:
            frame.selectExpr("id", "'s' AS part").writeTo(block.table).append()
            block.success()

    def run() -> None:
        stream = spark.readStream.format("delta").load(source).writeStream.foreachBatch(write)
        query = stream.option("checkpointLocation", f"{lake.table}-checkpoint").trigger(availableNow=True).start()
        query.awaitTermination()

    run()
    store = S3ObjectStore(lake.client, "soal-lake", f"{lake.name}-checkpoint")
    for listed in list(store.list("commits/")):
        store.delete(listed.key)  # as if killed before it could record the batch as done
    run()
    assert ids(spark, ice.name) == list(range(8))
    assert len(ice.history()) == 2
    assert [document.run_key.startswith("stream ") for document in ice.documents()] == [True]
