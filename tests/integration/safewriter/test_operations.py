"""Every operation that writes rows, guarded: it lands once; a failed block undoes it completely, or not at all.

The tables live for the whole file, so each operation works on the previous ones' results.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Final

import pytest

import safewriter
from safewriter import SafeWriter
from soal.testing.s3.rules import Match, Refuse, Rule
from tests.support.attempts import next_attempt
from tests.support.lake import Lake
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Row, SparkSession

    from soal.testing.s3.embedded import EmbeddedS3

pytestmark = pytest.mark.spark

TABLES: Final = {
    "plain": "",
    "every feature": "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.enableInCommitTimestamps' = 'true',"
    " 'delta.enableRowTracking' = 'true', 'delta.columnMapping.mode' = 'name', 'delta.checkpointPolicy' = 'v2',"
    " 'delta.enableDeletionVectors' = 'true')",
}


def write(mode: str, rows: int, **options: str) -> Callable[[SparkSession, str], None]:
    wider = not options.keys().isdisjoint({"mergeSchema", "overwriteSchema"})

    def run(spark: SparkSession, table: str) -> None:
        columns = ["id", "id % 3 AS part", *(["'new' AS more"] if wider else [])]
        frame = spark.range(100, 100 + rows).selectExpr(*columns)
        if "replaceWhere" in options:
            frame = frame.where("part = 1")
        frame.write.format("delta").mode(mode).options(**options).save(table)

    return run


def sql(statement: str) -> Callable[[SparkSession, str], None]:
    def run(spark: SparkSession, table: str) -> None:
        spark.range(0, 8, 2).selectExpr("id", "id % 3 AS part").createOrReplaceTempView("batch")
        spark.sql(statement.format(table=f"delta.`{table}`"))

    return run


MERGE: Final = (
    "MERGE INTO {table} t USING batch s ON t.id = s.id"
    " WHEN MATCHED AND s.id < 3 THEN DELETE WHEN MATCHED THEN UPDATE SET part = 2"
    " WHEN NOT MATCHED THEN INSERT (id, part) VALUES (s.id, s.part)"
)
NEW: Final = (
    "MERGE INTO {table} t USING batch s ON t.id = s.id + 500"
    " WHEN MATCHED THEN UPDATE SET part = 2 WHEN NOT MATCHED THEN INSERT (id, part) VALUES (s.id + 500, s.part)"
)
REPLACE: Final = (
    "CREATE OR REPLACE TABLE {table} USING delta PARTITIONED BY (part)"
    " AS SELECT id + 1 AS id, part, 'old' AS more, true AS extra FROM batch"
)
OPERATIONS: Final = {
    "append": (write("append", 7), "WRITE"),
    "insert": (sql("INSERT INTO {table} (id, part) SELECT id, part FROM batch"), "WRITE"),
    "merge of new rows": (sql(NEW), "MERGE"),
    "update": (sql("UPDATE {table} SET id = id + 1000 WHERE id % 2 = 1"), "UPDATE"),
    "merge": (sql(MERGE), "MERGE"),
    "delete": (sql("DELETE FROM {table} WHERE id % 5 = 1"), "DELETE"),
    "dynamic overwrite": (write("overwrite", 2, partitionOverwriteMode="dynamic"), "WRITE"),
    "replaceWhere": (write("overwrite", 9, replaceWhere="part = 1"), "WRITE"),
    "schema evolution": (write("append", 4, mergeSchema="true"), "WRITE"),
    "overwrite": (write("overwrite", 6), "WRITE"),
    "overwrite of the schema": (write("overwrite", 6, overwriteSchema="true"), "WRITE"),
    "replace as select": (sql(REPLACE), "CREATE OR REPLACE TABLE AS SELECT"),
}
SIMILAR: Final = (
    "insert",
    "merge of new rows",
    "update",
    "delete",
    "dynamic overwrite",
    "replaceWhere",
    "overwrite",
    "overwrite of the schema",
    "schema evolution",
)
"""Operations that are handled like others here."""


@pytest.fixture(
    scope="module", params=[pytest.param("plain", marks=pytest.mark.matrix), "every feature"], ids=list(TABLES)
)
def place(request: pytest.FixtureRequest, spark: SparkSession, s3: EmbeddedS3) -> Lake:
    lake = Lake(s3.observer(), s3.endpoint, f"tables/{uuid.uuid4().hex}")
    properties = TABLES[request.param]
    spark.sql(f"CREATE TABLE delta.`{lake.table}` (id LONG, part LONG) USING delta PARTITIONED BY (part) {properties}")
    spark.range(20).selectExpr("id", "id % 3 AS part").write.format("delta").mode("append").save(lake.table)
    return lake


def rows(spark: SparkSession, lake: Lake) -> tuple[list[str], list[Row]]:
    frame = spark.read.format("delta").load(lake.table)
    return frame.columns, sorted(frame.collect(), key=str)


ONLY_ADDS: Final = ("append", "insert", "merge of new rows")
"""The operations that can be undone: what they do to these tables, not their kind, decides."""


@pytest.mark.usefixtures("lake")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.matrix if name in SIMILAR else ()) for name in OPERATIONS]
)
def test_an_operation_of_a_failed_block_is_taken_back_whole_or_stays_whole(
    spark: SparkSession, place: Lake, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Operations that only add files are undone, and the retry lands them; any other stays, and the retry skips it."""
    operation, said = OPERATIONS[name]
    before, version = rows(spark, place), place.version()

    with pytest.raises(ZeroDivisionError) as raised, SafeWriter(spark, place.table, step=name) as failed:
        operation(spark, failed.table)
        _ = 1 / 0
    assert failed.checkpoint is not None
    if name in ONLY_ADDS:
        assert (failed.checkpoint.status, failed.checkpoint.undo_refused) == ("rolled_back", None)
        assert place.operations()[version + 1 :] == [said, "SAFEWRITER REVERT"]
        assert rows(spark, place) == before
    else:
        assert failed.checkpoint.status == "committed"
        assert str(failed.checkpoint.undo_refused) in raised.value.__notes__[0]
        assert place.operations()[version + 1 :] == [said]
    landed = rows(spark, place)

    next_attempt(monkeypatch)
    with SafeWriter(spark, place.table, step=name) as block:
        assert block.already_committed is (name not in ONLY_ADDS)
        operation(spark, block.table)
        block.success()
    assert block.checkpoint is not None
    assert block.checkpoint.status == "committed"
    assert place.operations()[-1] == said
    assert (rows(spark, place) == landed) is (name not in ONLY_ADDS)
    assert rows(spark, place) != before
    assert len(spark.sql(f"DESCRIBE HISTORY delta.`{place.table}`").collect()) == place.version() + 1


def test_maintenance_that_the_block_may_not_do_takes_nothing_from_its_write(spark: SparkSession, lake: Lake) -> None:
    """The script catches the refusal, before and after the write; no row is missing."""
    with SafeWriter(spark, lake.table) as block:
        spark.range(5).write.format("delta").mode("append").save(block.table)
        with pytest.raises(Exception, match="is not guarded"):
            spark.sql(f"ALTER TABLE delta.`{lake.table}` SET TBLPROPERTIES ('x' = 'y')")
        block.success()
    assert (lake.document().status, lake.rows()) == ("committed", 5)


@pytest.mark.parametrize("name", ["delete", pytest.param("overwrite", marks=pytest.mark.matrix), "schema evolution"])
def test_what_could_not_be_taken_back_is_refused_before_it_is_sent(spark: SparkSession, lake: Lake, name: str) -> None:
    """With `commit_point="success"` nothing may land that a settler could not undo; the error names the alternative."""
    spark.range(20).selectExpr("id", "id % 3 AS part").write.format("delta").save(lake.table)
    with (
        pytest.raises(safewriter.UnsupportedError, match="commit_point='write'"),
        SafeWriter(spark, lake.table, commit_point="success") as block,
    ):
        OPERATIONS[name][0](spark, block.table)
        block.success()
    assert (lake.document().status, lake.operations()) == ("rolled_back", ["WRITE"])
    with SafeWriter(spark, lake.table, commit_point="success") as block:
        OPERATIONS["append"][0](spark, block.table)
        block.success()
    assert lake.rows() == 27


@pytest.mark.parametrize("setting", ["option", "session"])
def test_a_commit_with_the_script_s_own_transaction_stays(
    spark: SparkSession, lake: Lake, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the rows were undone, the transaction would stay, and Delta would skip the retry's rows for it."""
    own = {"txnAppId": "the pipeline", "txnVersion": "7"}

    def write() -> None:
        frame = spark.range(5).write.format("delta").mode("append")
        if setting == "option":
            frame.options(**own).save(lake.table)
            return
        for name, value in own.items():
            spark.conf.set(f"spark.databricks.delta.write.{name}", value)
        try:
            frame.save(lake.table)
        finally:
            for name in own:
                spark.conf.unset(f"spark.databricks.delta.write.{name}")

    spark.range(3).write.format("delta").save(lake.table)
    with pytest.raises(ZeroDivisionError), SafeWriter(spark, lake.table):
        write()
        _ = 1 / 0
    assert lake.document().undo_refused == "version 1 holds the script's own transaction the pipeline"
    next_attempt(monkeypatch)
    with SafeWriter(spark, lake.table) as block:
        write()
        block.success()
    assert (block.already_committed, lake.rows()) == (True, 8)
    with (
        pytest.raises(safewriter.NotCommittedError, match="txnVersion"),
        SafeWriter(spark, lake.table, step="b") as two,
    ):
        write()  # Delta skips it
        two.success()


def test_a_block_may_write_other_tables_beside_a_statement_that_changes_nothing(
    spark: SparkSession, lake: Lake, s3: EmbeddedS3
) -> None:
    """Audit tables are common; the block's own statement has still made its commit."""
    audit = Lake(s3.observer(), s3.endpoint, f"tables/{uuid.uuid4().hex}")
    spark.range(5).write.format("delta").save(lake.table)
    with SafeWriter(spark, lake.table) as block:
        spark.sql(f"DELETE FROM delta.`{lake.table}` WHERE id = 99")
        spark.range(1).write.format("delta").mode("append").save(audit.table)
        block.success()
    assert (lake.document().status, lake.rows(), audit.rows()) == ("committed", 5, 1)


@pytest.mark.parametrize(
    "statement",
    [
        "OPTIMIZE {table}",
        pytest.param("ALTER TABLE {table} SET TBLPROPERTIES ('x' = 'y')", marks=pytest.mark.matrix),
        "RESTORE TABLE {table} TO VERSION AS OF 0",
    ],
)
def test_an_operation_that_writes_no_rows_is_refused_in_a_block(
    spark: SparkSession, lake: Lake, statement: str
) -> None:
    """Maintenance and properties are no batch: the error says to run them outside, and they have no effect."""
    for _ in range(2):
        spark.range(5).write.format("delta").mode("append").save(lake.table)
    with (
        pytest.raises(safewriter.UnsupportedError, match="before the block or after it"),
        SafeWriter(spark, lake.table) as block,
    ):
        spark.sql(statement.format(table=f"delta.`{lake.table}`"))
        block.success()
    assert lake.operations() == ["WRITE", "WRITE"]
    assert until(lambda: lake.orphans() == set())


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM {table} WHERE id = 99",
        pytest.param("UPDATE {table} SET id = 1 WHERE id = 99", marks=pytest.mark.matrix),
        pytest.param(
            "MERGE INTO {table} t USING {table} s ON t.id = s.id AND s.id = 99 WHEN MATCHED THEN DELETE",
            marks=pytest.mark.matrix,
        ),
        "INSERT INTO {table} SELECT id FROM {table} WHERE id = 99",
    ],
)
def test_a_statement_that_changes_nothing_makes_a_commit_of_its_own(
    spark: SparkSession, lake: Lake, statement: str
) -> None:
    """The empty commit is the witness that it ran here; an empty file of it is removed."""
    spark.range(5).write.format("delta").save(lake.table)
    with SafeWriter(spark, lake.table) as block:
        spark.sql(statement.format(table=f"delta.`{lake.table}`"))
        block.success()
    document = lake.document()
    assert (document.status, document.attempt.commit_version, document.attempt.rows) == ("committed", 1, 0)
    assert (len(lake.operations()), lake.rows()) == (2, 5)
    assert until(lambda: lake.orphans() == set() and lake.markers(document) == ())


def test_a_table_that_was_recreated_while_the_block_was_open_is_not_written(spark: SparkSession, lake: Lake) -> None:
    """Its versions restart, so the claim's version means nothing for it."""
    for _ in range(3):
        spark.range(5).write.format("delta").mode("append").save(lake.table)
    frame = spark.range(3)
    with (
        pytest.raises(safewriter.UnsupportedError, match="dropped and recreated"),
        SafeWriter(spark, lake.table) as block,
    ):
        for listed in list(lake.store.list("")):
            lake.store.delete(listed.key)
        frame.write.format("delta").mode("append").save(block.table)
    assert lake.rows() == 0


@pytest.mark.parametrize(
    "create", ["CREATE OR REPLACE TABLE", pytest.param("CREATE TABLE IF NOT EXISTS", marks=pytest.mark.matrix)]
)
def test_a_table_that_was_replaced_before_is_settled_as_any_other(spark: SparkSession, lake: Lake, create: str) -> None:
    """CREATE OR REPLACE gives it another id than version 0 has; a failed block is undone, and its retry lands."""
    table = f"delta.`{lake.table}`"
    for _ in range(2):
        spark.sql(f"{create} {table} USING delta AS SELECT id FROM range(5)")
        spark.range(5).write.format("delta").mode("append").save(lake.table)
    before = lake.rows()
    with pytest.raises(ZeroDivisionError), SafeWriter(spark, lake.table, commit_point="success") as failed:
        spark.range(3).write.format("delta").mode("append").save(failed.table)
        _ = 1 / 0
    assert lake.document().status == "rolled_back"
    assert lake.rows() == before
    with SafeWriter(spark, lake.table) as block:
        spark.range(3).write.format("delta").mode("append").save(block.table)
        block.success()
    assert (lake.document().status, lake.rows()) == ("committed", before + 3)
    lake.check()


def test_rows_of_an_identity_column_stay(spark: SparkSession, lake: Lake) -> None:
    """Each write moves the column's mark, which is in the schema, and the mark is not restored."""
    table = f"delta.`{lake.table}`"
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT GENERATED ALWAYS AS IDENTITY, n BIGINT, twice BIGINT GENERATED ALWAYS AS"
        " (n * 2), at TIMESTAMP_NTZ) USING delta CLUSTER BY (n)"
    )
    spark.sql(f"ALTER TABLE {table} ADD CONSTRAINT positive CHECK (n >= 0)")
    insert = f"INSERT INTO {table} (n, at) SELECT id, TIMESTAMP_NTZ '2026-11-21 00:00:00' FROM range(5)"
    spark.sql(insert)
    before = rows(spark, lake)
    plain = "MERGE INTO {} t USING (SELECT 99 AS n) s ON t.n = s.n WHEN NOT MATCHED THEN INSERT (n) VALUES (s.n)"
    for statement, why in ((insert, "changed the table's schema"), (plain.format(table), "changed the table's schema")):
        with pytest.raises(ZeroDivisionError), SafeWriter(spark, lake.table, step=statement) as failed:
            spark.sql(statement)
            _ = 1 / 0
        assert failed.checkpoint is not None
        assert why in str(failed.checkpoint.undo_refused)  # the identity column's high water mark is in the schema
    assert len(rows(spark, lake)[1]) == len(before[1]) + 6
    with SafeWriter(spark, lake.table, step="lands") as block:
        spark.sql(insert)
        block.success()
    ids = [row.id for row in rows(spark, lake)[1]]
    assert len(set(ids)) == len(ids) == 16
    with pytest.raises(Exception, match="positive"):
        spark.sql(f"INSERT INTO {table} (n) VALUES (-1)")


def test_a_creation_that_is_fenced_keeps_its_clustering(spark: SparkSession, lake: Lake, s3: EmbeddedS3) -> None:
    """The empty table that a settler creates from the note is the one that the statement would have created."""
    rule = Rule(Match(operations={"PutObject"}, key=f"{lake.name}/_delta_log/{0:020}.json"), Refuse(412))
    s3.wire.add(rule)
    with pytest.raises(Exception, match="412"), SafeWriter(spark, lake.table):
        spark.sql(f"CREATE TABLE delta.`{lake.table}` USING delta CLUSTER BY (id) AS SELECT id FROM range(5)")
    assert (rule.hits, lake.operations(), lake.document().status) == (1, ["SAFEWRITER FENCE"], "rolled_back")
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{lake.table}`").collect()[0]
    assert (detail.clusteringColumns, detail.numFiles) == (["id"], 0)
    lake.check()


@pytest.mark.parametrize("feature", ["catalogManaged", "coordinatedCommits-preview"])
def test_a_table_that_a_catalog_commits_to_is_refused(spark: SparkSession, lake: Lake, feature: str) -> None:
    """Its commits bypass the log store, so the gate cannot stop them; nothing is claimed."""
    name = f"_delta_log/{0:020}"
    spark.range(3).write.format("delta").save(lake.table)
    stored = lake.store.get(f"{name}.json")
    assert stored is not None
    reads = [] if feature.startswith("coordinated") else [feature]
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": [*reads, "vacuumProtocolCheck"],
        "writerFeatures": [feature, "inCommitTimestamp", "vacuumProtocolCheck"],
    }
    actions = [action for line in stored.body.splitlines() if "protocol" not in (action := json.loads(line))]
    lake.store.put(f"{name}.json", b"\n".join(json.dumps(one).encode() for one in [*actions, {"protocol": protocol}]))
    lake.store.delete(f"{name}.crc")
    jvm = spark._jvm
    assert jvm is not None
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    with pytest.raises(safewriter.UnsupportedError, match="a catalog commits to this table"):
        SafeWriter(spark, lake.table).__enter__()
    assert lake.documents() == []
