"""Statements of one block on an Iceberg table on several threads, in several sessions, or beyond its end."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from safewriter import NotCommittedError, SafeWriter
from safewriter.record.journal import Journal
from tests.integration.safewriter.ice_rows import append, elsewhere, ids
from tests.support.attempts import next_attempt

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests.support.ice import Ice

pytestmark = [pytest.mark.spark, pytest.mark.parametrize("ice", ["lite"], indirect=True)]


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Journal]:
    """The supervisor's view of the journal."""
    monkeypatch.setenv("SOAL_JOURNAL", str(tmp_path / "journal"))
    with Journal(tmp_path / "journal") as journal:
        yield journal


def _refused(lines: Journal) -> list[object]:
    return [one.fields["reason"] for one in lines.entries() if one.event == "refused"]


def test_statements_of_several_threads_land_together(spark: SparkSession, ice: Ice) -> None:
    """Iceberg's transaction takes one change at a time; a parallel one would fail."""
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        at_once = threading.Barrier(4)

        def write(number: int) -> None:
            at_once.wait()
            append(spark, block.table, 10 * number, 10 * number + 2)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(1, 5)))
        block.success()
    assert set(ids(spark, ice.name)) >= {10, 11, 20, 21, 30, 31, 40, 41}


def test_a_frame_of_another_session_lands_in_the_block(spark: SparkSession, ice: Ice) -> None:
    """Like that of a stream's batch: each session of the function has the catalog of blocks."""
    other = spark.newSession()
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(other, block.table, 30, 32)
        block.success()
    assert set(ids(spark, ice.name)) >= {30, 31}


def _slow(spark: SparkSession, folder: Path) -> DataFrame:
    """Return a row whose task waits until the test marks the block as over, or for a minute."""

    def when_over(id_: int) -> int:
        import time

        (folder / "begun").touch()
        until = time.monotonic() + 60
        while not (folder / "over").exists() and time.monotonic() < until:
            time.sleep(0.01)
        return id_

    return spark.range(50, 51, 1, 1).select(
        F.udf(when_over, "long", useArrow=False)("id").alias("id"), F.lit("a").alias("part")
    )


@pytest.mark.parametrize("statement", ["append", "merge"])
def test_success_beside_a_statement_that_still_runs_is_refused(
    spark: SparkSession, ice: Ice, tmp_path: Path, statement: str
) -> None:
    """Its rows would be missing; nothing is published, so that a retry writes all of them."""
    frame = _slow(spark, tmp_path)
    frame.createOrReplaceTempView("slow")
    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(NotCommittedError, match="still running: let its thread end before success"),
        SafeWriter(spark, ice.name, format="iceberg") as block,
    ):
        append(spark, block.table, 10, 12)
        if statement == "append":
            pool.submit(lambda: frame.writeTo(block.table).append())
        else:
            pool.submit(
                spark.sql,
                f"MERGE INTO {block.table} t USING slow s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
            )
        while not (tmp_path / "begun").exists():
            threading.Event().wait(0.01)
        try:
            block.success()
        finally:
            (tmp_path / "over").touch()
    assert not set(ids(spark, ice.name)) & {10, 11, 50}
    assert ice.document().status == "rolled_back"


def test_a_statement_behind_the_end_of_its_block_is_told_to_the_supervisor(
    spark: SparkSession, ice: Ice, lines: Journal
) -> None:
    """The script may ignore its thread's error, so the job would succeed without its rows."""
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        table = block.table
        append(spark, table, 10, 12)
        block.success()
        with pytest.raises(PySparkException):
            spark.table(table).collect()
        assert _refused(lines) == [], "a statement that only reads lacks nothing"

        def write() -> None:
            with pytest.raises(PySparkException):
                append(spark, table, 20, 22)

        elsewhere(write)
    assert set(_refused(lines)) == {"the block of this statement has ended, and nothing of it is published any more"}
    assert not set(ids(spark, ice.name)) & {20, 21}


def test_a_statement_of_java_behind_the_end_is_told_too(spark: SparkSession, ice: Ice, lines: Journal) -> None:
    """It has its table from within the block, so it looks nothing up in the catalog any more."""
    jvm = spark._jvm
    assert jvm is not None
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, block.table)
        append(spark, block.table, 10, 12)
        block.success()
    with pytest.raises(Exception, match="the block of this statement has ended"):
        table.newAppend()
    assert len(_refused(lines)) == 1


def test_a_table_that_the_block_sets_back_on_a_retry_is_no_success(
    spark: SparkSession, ice: Ice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Iceberg's procedure moves main at once; a second time it removes what the retry's skipped write stands for."""
    catalog, _, table = ice.name.partition(".")
    first = ice.snapshots()[0].snapshot_id

    def reload() -> None:
        with SafeWriter(spark, ice.name, format="iceberg") as block:
            spark.sql(f"CALL {catalog}.system.rollback_to_snapshot('{table}', {first})")
            append(spark, block.table, 30, 32)
            block.success()

    reload()
    assert set(ids(spark, ice.name)) >= {30, 31}
    next_attempt(monkeypatch)
    with pytest.raises(NotCommittedError, match=r"does not show snapshot \d+ of this write any more"):
        reload()


def test_a_statement_that_would_make_the_table_anew_says_what_replaces_it(spark: SparkSession, ice: Ice) -> None:
    """The table's rows can be replaced in a block, the table cannot."""
    with pytest.raises(Exception, match="INSERT OVERWRITE"), SafeWriter(spark, ice.name, format="iceberg") as block:
        spark.sql(f"CREATE OR REPLACE TABLE {block.table} USING iceberg AS SELECT 1L AS id")
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4]
