"""Other writers commit to an Iceberg table while a block on it is open."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError

from safewriter import ConflictError, SafeWriter
from safewriter.objects import Location
from safewriter.tables.iceberg.session import IcebergSession
from tests.integration.safewriter.ice_rows import (
    COLUMNS,
    MATCHED,
    MODES,
    STATEMENTS,
    AbandonedError,
    append,
    foreign,
    ids,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from safewriter.tables.session import Opening
    from tests.support.ice import Ice

pytestmark = [pytest.mark.spark]


def test_an_append_is_published_on_a_main_that_has_moved(spark: SparkSession, ice: Ice) -> None:
    """Earlier commits keep their rows: Iceberg itself appends on top of them."""
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        foreign(spark, ice, 20, 22)
        block.success()
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4, 5, 6, 7, 20, 21]
    ice.check()


@pytest.mark.parametrize(
    "mode", [pytest.param(mode, marks=() if mode == "copy-on-write" else pytest.mark.matrix) for mode in MODES]
)
def test_one_new_key_that_two_jobs_upsert_is_there_once(spark: SparkSession, ice: Ice, mode: str) -> None:
    """The MERGE matches nothing, so it only adds files, but it is no append: repeated, it matches."""
    spark.sql(f"ALTER TABLE {ice.name} SET TBLPROPERTIES ('write.merge.mode' = '{mode}')")
    merge = (
        "MERGE INTO {table} t USING (SELECT 9L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET part = 'c'"
        " WHEN NOT MATCHED THEN INSERT (id, part) VALUES (s.id, 'b')"
    )
    tries = 0
    while True:
        try:
            with SafeWriter(spark, ice.name, format="iceberg") as block:
                spark.sql(merge.format(table=block.table))
                if not tries:
                    foreign(spark, ice, 9, 10)
                block.success()
            break
        except ConflictError:
            tries += 1
    assert (tries, ids(spark, ice.name)) == (1, [0, 1, 2, 3, 4, 9])
    assert ice.document().epoch == 2
    ice.check()


def test_one_statement_is_published_beside_what_iceberg_finds_no_conflict_with(spark: SparkSession, ice: Ice) -> None:
    """A compaction of other files changes no row that the statement has read."""
    for part in ("b", "b"):
        spark.sql(f"INSERT INTO {ice.name} VALUES (30, '{part}')")
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        spark.sql(f"UPDATE {block.table} SET id = id + 10 WHERE part = 'a'")
        catalog, _, table = ice.name.partition(".")
        spark.sql(
            f"CALL {catalog}.system.rewrite_data_files(table => '{table}', where => \"part = 'b'\","
            " options => map('rewrite-all', 'true'))"
        )
        block.success()
    assert ids(spark, ice.name) == [10, 11, 12, 13, 14, 30, 30]
    ice.check()


@pytest.mark.parametrize("second", ["append", "merge"])
def test_of_several_statements_none_is_published_on_a_main_that_has_moved(
    spark: SparkSession, ice: Ice, second: str
) -> None:
    """Iceberg would check the second for conflicts only since the first, not since the block began, and would publish
    the first with the sequence number of another writer's commit.
    """
    with (
        pytest.raises(ConflictError, match="several statements"),
        SafeWriter(spark, ice.name, format="iceberg") as block,
    ):
        append(spark, block.table, 5, 8)
        spark.sql(STATEMENTS[second][0].format(table=block.table, matched=MATCHED))
        foreign(spark, ice, 20, 22)
        block.success()
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4, 20, 21]
    assert ice.document().status == "rolled_back"
    ice.check()


def test_a_commit_that_would_delete_what_metadata_names_is_not_published(
    spark: SparkSession, ice: Ice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Iceberg deletes old metadata files by their names in the metadata, which its writers choose."""
    spark.sql(
        f"ALTER TABLE {ice.name} SET TBLPROPERTIES ('write.metadata.delete-after-commit.enabled' = 'true',"
        " 'write.metadata.previous-versions-max' = '1')"
    )
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 6)
        block.success()
    monkeypatch.setenv("SOAL_RUN_KEY", uuid.uuid4().hex)
    where = Location.parse(ice.load().metadata_location)
    body = ice.client.get_object(Bucket=where.bucket, Key=where.key)["Body"].read()
    metadata = json.loads(body)
    victim = f"s3a://{where.bucket}/{where.key}.csv"
    metadata["metadata-log"][:0] = [{"metadata-file": victim, "timestamp-ms": 1}]
    ice.client.put_object(Bucket=where.bucket, Key=where.key, Body=json.dumps(metadata).encode())
    ice.client.put_object(Bucket=where.bucket, Key=f"{where.key}.csv", Body=b"theirs")
    spark.catalog.refreshTable(ice.name)
    with (
        pytest.raises(ConflictError, match=r"\.csv, which is not named like a metadata file, .*enabled to false"),
        SafeWriter(spark, ice.name, format="iceberg") as block,
    ):
        append(spark, block.table, 6, 7)
        block.success()
    ice.client.head_object(Bucket=where.bucket, Key=f"{where.key}.csv")
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", ["v1764180000123", "1764180000"])
def test_metadata_that_a_catalog_has_named_by_its_time_keeps_no_commit_away(
    spark: SparkSession, ice: Ice, name: str
) -> None:
    """A table that was registered from such a file has it in its log."""
    where = Location.parse(ice.load().metadata_location)
    first = f"{where.key.rpartition('/')[0]}/{name}.metadata.json"
    ice.client.copy_object(Bucket=where.bucket, Key=first, CopySource={"Bucket": where.bucket, "Key": where.key})
    catalog, _, table = f"{ice.name}_{name}".partition(".")
    spark.sql(
        f"CALL {catalog}.system.register_table(table => '{table}', metadata_file => 's3a://{where.bucket}/{first}')"
    )
    spark.sql(
        f"ALTER TABLE {catalog}.{table} SET TBLPROPERTIES ('write.metadata.delete-after-commit.enabled' = 'true',"
        " 'write.metadata.previous-versions-max' = '1')"
    )
    with SafeWriter(spark, f"{catalog}.{table}", format="iceberg") as block:
        append(spark, block.table, 5, 6)
        block.success()
    assert ids(spark, f"{catalog}.{table}") == [0, 1, 2, 3, 4, 5]


def test_another_table_in_the_block_is_written_as_ever(spark: SparkSession, ice: Ice) -> None:
    """Also a table that was guarded before: no state of table or session remains."""
    other = f"{ice.name}_other"
    spark.sql(f"CREATE TABLE {other} {COLUMNS}")
    with SafeWriter(spark, other, format="iceberg") as block:
        append(spark, block.table, 0, 1)
        block.success()
    with pytest.raises(AbandonedError), SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        append(spark, other, 1, 3)
        raise AbandonedError
    assert (ids(spark, ice.name), ids(spark, other)) == ([0, 1, 2, 3, 4], [0, 1, 2])


def test_a_catalog_is_the_one_of_the_blocks_session(spark: SparkSession, ice: Ice) -> None:
    """Also when another session is the active one of the thread, and the block is the first to use the catalog."""
    maker, other = spark.newSession(), spark.newSession()
    for key, value in ice.catalog.settings().items():
        for session in (maker, other):
            session.conf.set(key.replace(f".{ice.catalog.name}", ".another", 1), value)
    maker.sql("CREATE NAMESPACE IF NOT EXISTS another.db")
    name = f"another.db.t{uuid.uuid4().hex}"
    maker.sql(f"CREATE TABLE {name} (id LONG, part STRING) USING iceberg")
    with SafeWriter(other, name, format="iceberg") as block:
        append(other, block.table, 5, 8)
        block.success()
    assert ids(maker, name) == [5, 6, 7]


def test_a_block_whose_table_is_renamed_publishes_nothing(spark: SparkSession, ice: Ice) -> None:
    """It fails immediately: waiting for the table would be in vain."""
    away = f"{ice.name}_away"
    with (
        pytest.raises(ConflictError, match="does not hold"),
        SafeWriter(spark, ice.name, format="iceberg") as block,
    ):
        append(spark, block.table, 5, 8)
        spark.sql(f"ALTER TABLE {ice.name} RENAME TO {away.partition('.')[2]}")
        block.success()
    assert ice.document().status == "rolled_back"
    spark.sql(f"ALTER TABLE {away} RENAME TO {ice.name.partition('.')[2]}")
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4]
    ice.check()


def test_a_block_whose_table_was_recreated_since_its_claim_is_not_opened(
    spark: SparkSession, ice: Ice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim has looked for the write in another table."""
    begin = IcebergSession.begin

    def begin_late(session: IcebergSession, opening: Opening) -> None:
        spark.sql(f"DROP TABLE {ice.name}")
        spark.sql(f"CREATE TABLE {ice.name} {COLUMNS}")
        append(spark, ice.name, 9, 10)
        begin(session, opening)

    monkeypatch.setattr(IcebergSession, "begin", begin_late)
    with (
        pytest.raises(Exception, match="was dropped and recreated: its id is"),
        SafeWriter(spark, ice.name, format="iceberg"),
    ):
        pytest.fail("the block was opened")
    assert ids(spark, ice.name) == [9]


def test_metadata_that_another_thread_has_read_since_is_not_what_a_publication_begins_with(
    spark: SparkSession, ice: Ice
) -> None:
    """It would set the branch to its own snapshot, over a commit that it has not seen."""
    with pytest.raises(AbandonedError), SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        session: Any = block._block.session
        field = session._staging.getClass().getDeclaredField("publication")
        field.setAccessible(True)
        publication = field.get(session._staging)
        base = publication.refresh()
        staged = session._staging.operations().current()
        foreign(spark, ice, 20, 22)
        publication.refresh()
        with pytest.raises(Py4JJavaError, match="has changed since it was read"):
            publication.commit(base, staged)
        raise AbandonedError
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4, 20, 21]


@pytest.mark.parametrize("mode", MODES)
def test_what_was_computed_from_rows_that_main_has_lost_is_not_published(
    spark: SparkSession, ice: Ice, mode: str
) -> None:
    """Another writer has set main back; Iceberg refuses in several ways, and each is a conflict."""
    spark.sql(f"ALTER TABLE {ice.name} SET TBLPROPERTIES ('write.delete.mode' = '{mode}')")
    back = ice.snapshots()[-1]
    foreign(spark, ice, 5, 8)
    catalog, _, table = ice.name.partition(".")
    with pytest.raises(ConflictError), SafeWriter(spark, ice.name, format="iceberg") as block:
        spark.sql(f"DELETE FROM {block.table} WHERE id IN (1, 6)")
        spark.sql(f"CALL {catalog}.system.set_current_snapshot(table => '{table}', snapshot_id => {back.snapshot_id})")
        block.success()
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4]
    assert ice.document().status == "rolled_back"
    ice.check()
