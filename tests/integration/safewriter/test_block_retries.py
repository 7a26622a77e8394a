"""Blocks whose write an earlier attempt has begun: skipped, written again, or fenced off."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import safewriter
from safewriter import SafeWriter
from safewriter.deadline import epoch_ms
from safewriter.objects.s3 import table_store
from safewriter.settle.recovery import Cause, Recovery
from soal.testing.s3.rules import Match, Rule
from tests.integration.safewriter.appending import append, batch
from tests.support.attempts import next_attempt
from tests.support.hygiene import wait_for_hygiene

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from soal.testing.s3.exchange import Reply, Request
    from tests.support.lake import Lake

pytestmark = pytest.mark.spark


def test_a_committed_write_is_skipped_on_a_retry_however_the_script_goes_about_it(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`already_committed` says so; a write in spite of it lands nowhere; the one-line form skips by itself."""
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


def test_a_write_that_the_program_has_called_empty_is_skipped_on_a_retry(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is committed on the program's word, which holds for each attempt of the run."""
    append(spark, lake, 5, "base")
    with SafeWriter(spark, lake.table, step="empty") as block:
        block.success(no_change=True)
    next_attempt(monkeypatch)
    with SafeWriter(spark, lake.table, step="empty") as block:
        assert block.already_committed
        batch(spark).write.format("delta").mode("append").save(block.table)
        block.success()
    assert lake.rows() == 5
    lake.check()


def test_what_a_try_has_left_that_lost_and_was_made_again_in_the_block_is_removed(
    spark: SparkSession, lake: Lake, s3: EmbeddedS3
) -> None:
    """The script catches the conflict and writes again: the commit names only the second try's files."""
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
    """Mode `ignore` finds the empty table and writes nothing, which is no success; `append` writes the batch."""
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


def test_a_fence_that_the_writer_did_not_see_stops_it(spark: SparkSession, lake: Lake) -> None:
    """Another settler fences it before Delta takes its snapshot: the gate checks every version since the claim."""
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
