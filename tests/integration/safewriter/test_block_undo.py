"""A commit that its block undoes, or cannot undo."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import safewriter
from safewriter import SafeWriter, SafeWriterError
from tests.integration.safewriter.appending import append, batch
from tests.support.attempts import next_attempt
from tests.support.lake import Lake
from tests.support.neighbour import append_beside

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3

pytestmark = pytest.mark.spark


def test_an_exception_undoes_exactly_our_commit(spark: SparkSession, lake: Lake) -> None:
    """The user's exception propagates unchanged, and another writer's later commit stays."""
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
    append(spark, lake, 1, "after")  # Spark continues from there
    assert lake.rows() == 15
    lake.check()


def test_a_committed_write_is_skipped_in_a_table_that_has_become_append_only(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each retry would fail, and each restart of a stream."""
    for attempt in range(2):
        with SafeWriter(spark, lake.table, commit_point="success") as block:
            batch(spark, 7).write.format("delta").mode("append").save(block.table)
            block.success()
        assert block.already_committed == (attempt > 0)
        if attempt == 0:
            spark.sql(f"ALTER TABLE delta.`{lake.table}` SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
            next_attempt(monkeypatch)
    assert lake.rows() == 7


def restore(spark: SparkSession, lake: Lake, version: int) -> None:
    """Restore the table as a neighbour: in another session, on another thread."""
    with ThreadPoolExecutor(1) as pool:
        other = spark.newSession()
        pool.submit(other.sql, f"RESTORE TABLE delta.`{lake.table}` TO VERSION AS OF {version}").result()


def test_undone_rows_that_a_neighbour_restores_are_not_written_again(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The retry finds them in the table, and skips the write."""
    append(spark, lake, 10, "base")
    for attempt in range(2):
        with suppress(ZeroDivisionError), SafeWriter(spark, lake.table, step="fails") as block:
            batch(spark, 7).write.format("delta").mode("append").save(block.table)
            _ = 1 / attempt
            block.success()
        if attempt == 0:
            restore(spark, lake, 1)
            next_attempt(monkeypatch)
    assert [one.status for one in lake.documents() if one.step == "fails"] == ["committed"]
    assert (lake.rows(), lake.operations()) == (17, ["WRITE", "WRITE", "SAFEWRITER REVERT", "RESTORE"])


def test_undone_rows_that_a_neighbour_restores_beside_an_open_block_keep_it_from_committing(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate sees them in the versions since the claim, whatever the block writes."""
    append(spark, lake, 10, "base")
    for attempt in range(2):
        with suppress(ZeroDivisionError, SafeWriterError), SafeWriter(spark, lake.table, step="fails") as block:
            if attempt == 1:
                restore(spark, lake, 1)
            batch(spark, 7).write.format("delta").mode("append").save(block.table)
            _ = 1 / attempt
            block.success()
        if attempt == 0:
            next_attempt(monkeypatch)
    assert [one.status for one in lake.documents() if one.step == "fails"] == ["rolled_back"]
    assert lake.rows() == 17


def test_a_block_that_is_left_without_success_leaves_nothing(spark: SparkSession, lake: Lake) -> None:
    """Undoing a creation leaves an empty table, and the verdict says so."""
    with SafeWriter(spark, lake.table) as block:
        batch(spark).write.format("delta").mode("append").save(block.table)
    assert lake.rows() == 0
    document = lake.document()
    assert document.status == "rolled_back"
    assert "an empty table remains" in str(document.reason)
    lake.check()


@pytest.mark.parametrize(
    "statement",
    [
        "MERGE INTO {t} t USING source s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
        "INSERT INTO {t} SELECT s.id FROM source s LEFT ANTI JOIN {t} t ON t.id = s.id",
    ],
    ids=["merge", "insert"],
)
def test_rows_for_which_a_guarded_neighbour_has_inserted_nothing_stay(
    spark: SparkSession, lake: Lake, statement: str
) -> None:
    """Its empty commit is the only sign that it found them; after an undo nobody would have its rows."""
    spark.range(1).write.format("delta").save(lake.table)

    def insert_what_is_missing() -> None:
        other = spark.newSession()
        other.range(1, 4).createOrReplaceTempView("source")
        with SafeWriter(other, lake.table, step="neighbour") as block:
            other.sql(statement.format(t=f"delta.`{block.table}`"))
            block.success()

    with pytest.raises(ZeroDivisionError), SafeWriter(spark, lake.table, step="fails") as block:
        spark.range(1, 4).write.format("delta").mode("append").save(block.table)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(insert_what_is_missing).result()
        _ = 1 / 0
    assert lake.rows() == 4
    assert block.checkpoint is not None
    assert block.checkpoint.undo_refused == "version 2 may depend on rows of version 1"


def test_an_append_only_table_cannot_promise_an_undo(spark: SparkSession, lake: Lake) -> None:
    """`commit_point="success"` is refused before the write; an exception ends committed, with a warning."""
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


def test_a_table_with_manifests_for_other_engines_has_each_batch_once_in_them(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only Spark rewrites a partition's manifest, so a commit to such a table stays and its retry is skipped."""
    of_old = spark.range(5).withColumn("part", F.lit("old"))
    of_old.write.format("delta").partitionBy("part").save(lake.table)
    spark.sql(
        f"ALTER TABLE delta.`{lake.table}` SET TBLPROPERTIES"
        " ('delta.compatibility.symlinkFormatManifest.enabled' = 'true')"
    )
    with pytest.raises(safewriter.UnsupportedError, match="symlinkFormatManifest"):
        SafeWriter(spark, lake.table, step="success", commit_point="success").__enter__()

    for part in ("one", "other"):
        next_attempt(monkeypatch)
        with suppress(ZeroDivisionError), SafeWriter(spark, lake.table) as block:
            rows = spark.range(3).withColumn("part", F.lit(part))
            rows.write.format("delta").mode("append").save(block.table)
            _ = 1 / 0
    assert "symlinkFormatManifest" in str(lake.document().undo_refused)
    assert lake.rows() == 8
    manifests = [listed.key for listed in lake.store.list("_symlink_format_manifest/") if listed.size]
    named = [line for key in manifests if (found := lake.store.get(key)) for line in found.body.decode().split()]
    assert spark.read.parquet(*named).count() == 8


FEATURES = {
    "plain": "",
    "change data feed": "'delta.enableChangeDataFeed' = 'true'",
    "in-commit timestamps": "'delta.enableInCommitTimestamps' = 'true'",
    "row tracking": "'delta.enableRowTracking' = 'true'",
    "column mapping": "'delta.columnMapping.mode' = 'name'",
    "deletion vectors": "'delta.enableDeletionVectors' = 'true'",
    "v2 checkpoints": "'delta.checkpointPolicy' = 'v2'",
}


SHORT = ("column mapping",)
"""The others run in the matrix; test_operations.py undoes writes under all of them at once."""


@pytest.mark.parametrize(
    "properties",
    [
        pytest.param(value, id=name, marks=[] if name in SHORT else [pytest.mark.matrix])
        for name, value in FEATURES.items()
    ],
)
def test_an_undo_is_right_under_every_table_feature_that_allows_one(
    spark: SparkSession, lake: Lake, properties: str
) -> None:
    """Spark reads the same rows as before, its history is complete, and it continues to append and delete."""
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


def test_a_table_goes_on_rightly_after_an_undo_in_a_partition_without_a_value(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other writers rely on the form of the undo's commit: a DELETE, a dynamic overwrite, and a second engine."""
    table = f"delta.`{lake.table}`"
    spark.sql(f"CREATE TABLE {table} (id LONG, part LONG) USING delta PARTITIONED BY (part)")
    spark.sql(f"INSERT INTO {table} VALUES (1, 1), (2, NULL)")
    with pytest.raises(ZeroDivisionError), SafeWriter(spark, lake.table):
        spark.sql(f"INSERT INTO {table} VALUES (3, NULL), (4, 4)")
        _ = 1 / 0
    spark.sql(f"DELETE FROM {table} WHERE id = 9")
    monkeypatch.setenv("SOAL_RUN_KEY", "another run")
    with SafeWriter(spark, lake.table) as block:
        frame = spark.sql("SELECT 13L AS id, CAST(NULL AS LONG) AS part")
        frame.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "dynamic").save(block.table)
        block.success()
    assert sorted(row.id for row in spark.read.format("delta").load(lake.table).collect()) == [1, 13]
    lake.download(tmp_path)
    write_deltalake(str(tmp_path), pa.table({"id": [14], "part": pa.array([None], pa.int64())}), mode="append")
    found = QueryBuilder().register("t", DeltaTable(str(tmp_path))).execute("SELECT id FROM t").read_all()
    assert sorted(found["id"].to_pylist()) == [1, 13, 14]
    lake.check()


def test_a_shallow_clone_keeps_what_removed_files_of_its_source(
    spark: SparkSession, lake: Lake, s3: EmbeddedS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clone uses absolute paths; a DELETE stays for that reason, and an append is undone."""
    source = Lake(s3.observer(), s3.endpoint, f"{lake.name}-source")
    append(spark, source, 4)
    monkeypatch.setenv("SOAL_RUN_KEY", "another run")
    spark.sql(f"CREATE TABLE delta.`{lake.table}` SHALLOW CLONE delta.`{source.table}`")
    with pytest.raises(ZeroDivisionError), SafeWriter(spark, lake.table, step="append") as added:
        batch(spark, 7).write.format("delta").mode("append").save(added.table)
        _ = 1 / 0
    with pytest.raises(ZeroDivisionError), SafeWriter(spark, lake.table, step="delete") as deleted:
        spark.sql(f"DELETE FROM delta.`{lake.table}` WHERE id = 1")
        _ = 1 / 0
    assert added.checkpoint is not None
    assert deleted.checkpoint is not None
    assert (added.checkpoint.status, added.checkpoint.undo_refused) == ("rolled_back", None)
    assert (deleted.checkpoint.status, deleted.checkpoint.undo_refused) == ("committed", "version 3 removed files")
    assert spark.read.format("delta").load(lake.table).count() == 3
    assert spark.read.format("delta").load(source.table).count() == 4
