"""A retry whose checkpoint bucket was emptied: the table is a witness, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from safewriter import SafeWriter, StepError, TryAgainError, UnknownOutcomeError, days, parts
from soal.testing.s3.rules import Match, Refuse, Rule
from tests.support.attempts import next_attempt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.support.lake import Lake

pytestmark = pytest.mark.spark

DAYS = days("2025-02-26", "2025-02-28")


def append(spark: SparkSession, table: str, rows: int) -> None:
    spark.range(0, rows, 1, 1).write.format("delta").mode("append").save(table)


def write(spark: SparkSession, lake: Lake, commit_point: Literal["write", "success"] = "write") -> SafeWriter:
    with SafeWriter(spark, lake.table, commit_point=commit_point) as block:
        append(spark, block.table, 3)
        block.success()
    return block


def lose_documents(lake: Lake) -> None:
    for document in lake.documents():
        lake.checkpoints.store.delete(f"checkpoints/{document.write_key}.json")
    assert lake.documents() == []


def test_parts_are_not_written_twice(spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is found in the table, and skipped; the document records where it was found."""
    for attempt in range(2):
        for part in parts(spark, lake.table, DAYS):
            with part as sw:
                append(spark, sw.table, 10)
                sw.success()
                assert sw.already_committed == (attempt > 0)
        if attempt == 0:
            lose_documents(lake)
            next_attempt(monkeypatch)
    assert (lake.rows(), lake.operations()) == (30, ["WRITE"] * 3)
    found = sorted(lake.documents(), key=lambda document: str(document.step))
    assert [(one.status, one.attempt.commit_version, one.attempt.rows) for one in found] == [
        ("committed", version, 10) for version in range(3)
    ]
    assert {one.reason for one in found} == {"retry: the table holds it, and its document was gone"}
    lake.check()


def test_a_second_block_of_the_name_is_refused(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A skip would lose its rows, as if the document were there."""
    write(spark, lake)
    lose_documents(lake)
    next_attempt(monkeypatch)
    assert write(spark, lake).already_committed
    with pytest.raises(StepError):
        write(spark, lake)
    assert lake.rows() == 3


def test_a_write_that_was_undone_is_written(spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its epoch is above the one in the table, so that its dead attempts stay fenced."""
    append(spark, lake.table, 1)
    with pytest.raises(ZeroDivisionError), SafeWriter(spark, lake.table) as block:
        append(spark, block.table, 3)
        _ = 1 / 0
    assert lake.operations()[-1] == "SAFEWRITER REVERT"
    lose_documents(lake)
    next_attempt(monkeypatch)
    assert not write(spark, lake).already_committed
    assert (lake.rows(), lake.document().epoch) == (4, 2)
    lake.check()


def test_a_commit_that_counts_by_success_alone_is_left_to_a_person(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing shows whether success() was called; the error says how to go on."""
    write(spark, lake, "success")
    lose_documents(lake)
    next_attempt(monkeypatch)
    with pytest.raises(UnknownOutcomeError, match=r"nothing was written: .* as 0, .*commit_point='write'"):
        write(spark, lake, "success")
    assert (lake.rows(), lake.documents()) == (3, [])
    assert write(spark, lake).already_committed
    assert lake.rows() == 3


def test_a_document_that_tells_less_than_the_table_is_not_believed(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example that of an attempt that died between its claim and the read of the table."""
    write(spark, lake)
    stored = lake.checkpoints.read(lake.document().write_key)
    assert stored is not None
    lied = stored.document.to_bytes().replace(b'"status": "committed"', b'"status": "rolled_back"')
    lake.checkpoints.store.put(f"checkpoints/{stored.document.write_key}.json", lied)
    next_attempt(monkeypatch)
    assert write(spark, lake).already_committed
    assert (lake.rows(), lake.document().status) == (3, "committed")


def test_a_version_that_cannot_be_read_proves_nothing(spark: SparkSession, s3: EmbeddedS3, lake: Lake) -> None:
    """The write is not claimed, and a retry reads again."""
    append(spark, lake.table, 1)
    append(spark, lake.table, 1)
    key = f"{lake.name}/_delta_log/{0:020}.json"
    refuse = Rule(Match(operations={"GetObject"}, key=key), Refuse(403), times=None)
    s3.wire.add(refuse)
    try:
        with pytest.raises(TryAgainError, match=r"nothing was written: .*cannot tell which writes the table holds"):
            write(spark, lake)
    finally:
        s3.wire.clear_rules()
    assert (lake.rows(), lake.documents()) == (2, [])
    assert not write(spark, lake).already_committed
    assert lake.rows() == 5
