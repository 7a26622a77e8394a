"""The sample job that compacts a table beside guarded writers: nobody loses, and the files become fewer."""

from __future__ import annotations

import runpy
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from safewriter import SafeWriter
from tests.integration.safewriter.ice_rows import append as append_to_iceberg
from tests.integration.safewriter.ice_rows import ids, session_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.ice import Ice
    from tests.support.lake import Lake

pytestmark = pytest.mark.spark
JOB = Path(__file__).parents[3] / "scripts" / "jobs" / "maintain.py"
WRITERS, BLOCKS = 4, 3


def maintain(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> dict[str, Any]:
    """Run the job in this process, on the tests' session, and return its names."""
    monkeypatch.setattr(sys, "argv", [str(JOB), *arguments])
    return runpy.run_path(str(JOB), run_name="__main__")


def test_an_error_that_lasts_is_no_writer_s_conflict(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its text may hold the name of one: a path's, or a class's."""
    with pytest.raises(Exception, match="ConcurrentUsers"):
        maintain(monkeypatch, "--table", f"{lake.table}/ConcurrentUsers")


@pytest.mark.parametrize("ice", ["lite"], indirect=True)
def test_a_table_whose_snapshots_nobody_may_expire_is_no_conflict(
    spark: SparkSession, ice: Ice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Iceberg has the same class for that and for a compaction that comes too late."""
    spark.sql(f"ALTER TABLE {ice.name} SET TBLPROPERTIES ('gc.enabled' = 'false')")
    with pytest.raises(Exception, match="GC is disabled"):
        maintain(monkeypatch, "--table", ice.name)


def test_a_conflict_is_known_by_the_class_of_a_cause(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The job tries three times, says why, and ends with the code for a later try."""
    spark.range(3).write.format("delta").save(lake.table)
    yielding = maintain(monkeypatch, "--table", lake.table)["yielding"]
    assert spark._jvm is not None
    java = spark._jvm.java
    conflicts = (
        spark._jvm.org.apache.iceberg.exceptions.CommitFailedException(java.lang.RuntimeException("late")),
        spark._jvm.io.delta.exceptions.ConcurrentWriteException("late"),
    )
    for conflict in conflicts:
        with pytest.raises(SystemExit) as ended:
            yielding(java.util.concurrent.CompletableFuture.failedFuture(conflict).join)
        assert ended.value.code == 75
        out = capsys.readouterr().out
        assert out.count("a writer has committed first") == 3
        assert "late" in out


def test_four_writers_of_a_delta_table_and_its_maintenance_lose_nothing(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each block appends three files; compactions run beside them, and once at the end."""
    spark.range(0, 3, 1, 3).write.format("delta").save(lake.table)

    def write(writer: int) -> None:
        session = spark.newSession()
        for number in range(BLOCKS):
            with SafeWriter(session, lake.table, step=f"{writer}-{number}") as block:
                session.range(0, 10, 1, 3).write.format("delta").mode("append").save(block.table)
                block.success()

    with ThreadPoolExecutor(WRITERS) as pool:
        writers = [pool.submit(write, writer) for writer in range(WRITERS)]
        while not all(writer.done() for writer in writers):
            maintain(monkeypatch, "--table", lake.table)
        for writer in writers:
            writer.result()
    maintain(monkeypatch, "--table", lake.table)
    assert lake.rows() == 3 + WRITERS * BLOCKS * 10
    assert {document.status for document in lake.documents()} == {"committed"}
    assert "files became 1" in capsys.readouterr().out
    lake.check()


@pytest.mark.parametrize("ice", ["lite"], indirect=True)
def test_writers_of_an_iceberg_table_and_its_maintenance_lose_nothing(
    spark: SparkSession, ice: Ice, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A block that meets a compaction publishes all the same, since it only appends."""
    session = session_of(spark, ice)

    def write() -> None:
        for number in range(6):
            with SafeWriter(session, ice.name, format="iceberg", step=str(number)) as block:
                append_to_iceberg(session, block.table, 100 + 10 * number, 110 + 10 * number)
                block.success()

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        while not writer.done():
            maintain(monkeypatch, "--table", ice.name, "--files-min", "2", "--keep-days", "0")
        writer.result()
    maintain(monkeypatch, "--table", ice.name, "--files-min", "2")
    assert ids(spark, ice.name) == [*range(5), *range(100, 160)]
    assert "files became" in capsys.readouterr().out
    ice.check()
