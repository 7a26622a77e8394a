"""A guarded block on an Iceberg table: real Spark, catalogs of each kind, the embedded S3.

Glue is moto's, which checks no version of a table; the emulator does (scripts/emulator/glue.py).
"""

from __future__ import annotations

import itertools
import os
import uuid
from typing import TYPE_CHECKING, Any, Literal

import pytest
from pyspark.errors import AnalysisException

from safewriter import ConflictError, DeadlineError, NotCommittedError, SafeWriter, UnsupportedError, writer
from safewriter.deadline import epoch_ms
from safewriter.objects.s3 import S3ObjectStore
from safewriter.record.document import NO_CHANGE
from safewriter.record.journal import Journal
from safewriter.settings import Settings
from safewriter.settle.recovery import Cause
from safewriter.settle.supervisor import Supervision
from scripts.emulator import Freeze, Match, Refuse, Rule
from tests.support.attempts import next_attempt
from tests.support.deadlines import FarDeadline, wait_for_watchdog
from tests.support.hygiene import wait_for_hygiene

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from scripts.emulator.exchange import Reply, Request
    from scripts.emulator.s3 import EmbeddedS3
    from tests.support.ice import Catalog, Ice
    from tests.support.lake import Lake

pytestmark = [pytest.mark.spark]


class AbandonedError(Exception):
    """What a script raises in its block."""


CATALOGS = [
    "lite",
    *(pytest.param(name, marks=pytest.mark.matrix) for name in ("rest", "postgres")),
    *(pytest.param(name, marks=[pytest.mark.matrix, pytest.mark.aws]) for name in ("glue", "native")),
]
FORMATS = [1, 2, 3]
MODES = ["copy-on-write", "merge-on-read"]
COLUMNS = "(id LONG, part STRING) USING iceberg PARTITIONED BY (bucket(2, part))"


@pytest.fixture(params=CATALOGS)
def ice(spark: SparkSession, s3: EmbeddedS3, lake: Lake, request: pytest.FixtureRequest) -> Ice:
    """A table of the test's own with five rows, partitioned by a hidden column, in each kind of catalog."""
    catalog: Catalog = request.getfixturevalue(request.param)
    table = catalog.table(s3.observer())
    spark.sql(f"CREATE TABLE {table.name} {COLUMNS}")
    append(spark, table.name, 0, 5)
    return table


def append(spark: SparkSession, table: str, begin: int, end: int) -> None:
    spark.range(begin, end, 1, 1).selectExpr("id", "'a' AS part").writeTo(table).append()


def ids(spark: SparkSession, table: str) -> list[int]:
    spark.catalog.refreshTable(table)  # another session may have written it, and Iceberg keeps tables for half a minute
    return sorted(row.id for row in spark.table(table).collect())


MATCHED = " WHEN MATCHED THEN UPDATE SET id = t.id + 100 WHEN NOT MATCHED THEN INSERT (id, part) VALUES (s.id, 'b')"
STATEMENTS = {
    "append": ("INSERT INTO {table} VALUES (7, 'b')", [0, 1, 2, 3, 4, 7]),
    "overwrite": ("INSERT OVERWRITE {table} VALUES (7, 'b')", [7]),
    "update": ("UPDATE {table} SET id = id + 10 WHERE id > 2", [0, 1, 2, 13, 14]),
    "delete of rows": ("DELETE FROM {table} WHERE id = 3", [0, 1, 2, 4]),
    "delete of files": ("DELETE FROM {table} WHERE part = 'a'", []),
    "truncate": ("TRUNCATE TABLE {table}", []),
    "merge": (
        "MERGE INTO {table} t USING (SELECT explode(array(3L, 9L)) AS id) s ON t.id = s.id{matched}",
        [0, 1, 2, 4, 9, 103],
    ),
}
SHORT = {("append", "copy-on-write", 2), ("merge", "merge-on-read", 3), ("update", "copy-on-write", 1)}
"""What scripts/test runs of them; the others are for the matrix."""


@pytest.mark.parametrize(
    ("name", "mode", "version"),
    [
        pytest.param(*case, marks=() if case in SHORT else pytest.mark.matrix)
        for case in itertools.product(STATEMENTS, MODES, FORMATS)
        if case[1:] != ("merge-on-read", 1)
    ],
)
def test_an_operation_is_dropped_by_a_failed_block_and_published_by_the_next(
    spark: SparkSession, ice: Ice, name: str, mode: str, version: int
) -> None:
    """The block sees its own rows, main nothing of the failed attempt and one snapshot of the retry."""
    statement, after = STATEMENTS[name]
    spark.sql(f"DROP TABLE {ice.name}")
    spark.sql(
        f"CREATE TABLE {ice.name} {COLUMNS} TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' ="
        f" '{mode}', 'write.update.mode' = '{mode}', 'write.merge.mode' = '{mode}')"
    )
    append(spark, ice.name, 0, 5)
    with pytest.raises(AbandonedError), SafeWriter(spark, ice.name, format="iceberg") as block:
        spark.sql(statement.format(table=block.table, matched=MATCHED))
        assert ids(spark, block.table) == after, "the block sees its own rows"
        raise AbandonedError
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4]
    assert len(ice.history()) == 1
    ice.check()

    with SafeWriter(spark, ice.name, format="iceberg") as block:
        spark.sql(statement.format(table=block.table, matched=MATCHED))
        assert len(ice.history()) == 1, "nothing is visible before success()"
        block.success()
    assert ids(spark, ice.name) == after
    assert len(ice.history()) == 2
    assert ice.document().status == "committed"
    assert ice.refs() == {"main"}
    assert mode == "merge-on-read" or ice.rows() == len(after)
    ice.check()


def test_frames_are_staged_by_every_way_to_write_them(spark: SparkSession, ice: Ice) -> None:
    """The block's name is one that each of Spark's interfaces takes, and all of it is published as one."""
    frame = spark.range(5, 6, 1, 1).selectExpr("id", "'a' AS part")
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        frame.writeTo(block.table).append()
        frame.write.mode("append").insertInto(block.table)
        frame.write.mode("append").saveAsTable(block.table)
        frame.write.format("iceberg").mode("append").save(block.table)
        assert ice.rows() == 5
        block.success()
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4, 5, 5, 5, 5]
    assert ice.document().attempt.rows == 4
    ice.check()


def test_nothing_of_a_table_changes_but_its_rows_and_the_mark(spark: SparkSession, ice: Ice) -> None:
    """The number of tries that a block has stands in no property, also where the table has one of its own."""
    spark.sql(f"ALTER TABLE {ice.name} SET TBLPROPERTIES ('commit.retry.num-retries' = '3')")
    before = ice.load()
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        block.success()
    after = ice.load()
    mark = "safewriter." + ice.document().attempt.prefix.rstrip("-")
    assert after.properties.pop(mark).split()[:2] == [str(ice.document().attempt.commit_version), "3"]
    assert after.properties == before.properties
    assert after.metadata.refs.keys() == before.metadata.refs.keys()
    assert (after.schema(), after.spec(), after.sort_order()) == (before.schema(), before.spec(), before.sort_order())


def test_a_block_without_a_statement_changes_nothing(spark: SparkSession, ice: Ice) -> None:
    """It is committed; the table's metadata are those of before, to the file."""
    before = ice.load().metadata_location
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        block.success()
    assert ice.document().reason == NO_CHANGE
    assert ice.load().metadata_location == before


def test_a_failed_block_commits_nothing_to_its_catalog(spark: SparkSession, ice: Ice) -> None:
    """Nothing was sent that could arrive, so there is nothing to fence off."""
    before = ice.load().metadata_location
    with pytest.raises(AbandonedError), SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        raise AbandonedError
    assert ice.load().metadata_location == before


def test_an_empty_table_is_filled(spark: SparkSession, ice: Ice) -> None:
    """One that has no snapshot yet."""
    spark.sql(f"DROP TABLE {ice.name}")
    spark.sql(f"CREATE TABLE {ice.name} {COLUMNS}")
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        block.success()
    assert ids(spark, ice.name) == [5, 6, 7]
    ice.check()


@pytest.mark.parametrize("ice", ["rest"], indirect=True)
def test_an_empty_table_that_others_fill_at_once_gets_no_snapshot_of_ours(
    spark: SparkSession, s3: EmbeddedS3, ice: Ice
) -> None:
    """Of eight blocks that begin on an empty table at once each would use up Iceberg's four tries."""
    spark.sql(f"DROP TABLE {ice.name}")
    spark.sql(f"CREATE TABLE {ice.name} {COLUMNS}")
    rule = s3.wire.add(Rule(Match(operations={"CatalogChange"}), Freeze(lambda: foreign(spark, ice, 20, 22))))
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        block.success()
    assert rule.hits == 1
    assert ids(spark, ice.name) == [5, 6, 7, 20, 21]
    assert len(ice.history()) == 2
    ice.check()


def test_names_that_need_backticks_are_guarded(spark: SparkSession, ice: Ice) -> None:
    """A hyphen, a dot, a backtick; the checkpoint finds the table by the same name."""
    name = f"{ice.catalog.name}.db.`my-{uuid.uuid4().hex}.``t`"
    spark.sql(f"CREATE TABLE {name} (id LONG, part STRING) USING iceberg")
    with SafeWriter(spark, name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        block.success()
    assert sorted(row.id for row in spark.table(name).collect()) == [5, 6, 7]
    assert block.checkpoint is not None
    assert block.checkpoint.table == name


def test_a_table_that_is_not_there_is_refused_with_the_way_to_create_it(spark: SparkSession, ice: Ice) -> None:
    """Nothing is claimed."""
    with pytest.raises(UnsupportedError, match="CREATE TABLE IF NOT EXISTS"):
        SafeWriter(spark, f"{ice.name}_new", format="iceberg").__enter__()
    assert ice.documents() == []


def test_columns_of_a_frame_become_visible_with_its_rows(spark: SparkSession, ice: Ice) -> None:
    """`mergeSchema` adds them in the transaction, too."""
    spark.sql(f"ALTER TABLE {ice.name} SET TBLPROPERTIES ('write.spark.accept-any-schema' = 'true')")
    frame = spark.range(5, 6, 1, 1).selectExpr("id", "'a' AS part", "1 AS extra")
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        frame.writeTo(block.table).option("mergeSchema", "true").append()
        assert "extra" not in ice.load().schema().column_names
        block.success()
    assert ice.load().schema().column_names == ["id", "part", "extra"]
    ice.check()


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE {table} ADD COLUMN more STRING",
        "ALTER TABLE {table} SET TBLPROPERTIES ('a' = 'b')",
        "ALTER TABLE {table} ADD PARTITION FIELD truncate(2, part)",
        "ALTER TABLE {table} WRITE ORDERED BY id",
        "ALTER TABLE {table} CREATE BRANCH other",
        "DROP TABLE {table}",
        "CREATE OR REPLACE TABLE {table} (id LONG) USING iceberg",
    ],
)
def test_what_is_no_write_of_rows_is_refused_inside_a_block(spark: SparkSession, ice: Ice, statement: str) -> None:
    """It could not be published with the rows, so it is done before or after."""
    before = ice.load().metadata_location
    with pytest.raises(Exception, match=r"before or after|before the block|cannot be|not supported|not support|Cannot"):  # noqa: SIM117
        with SafeWriter(spark, ice.name, format="iceberg") as block:
            spark.sql(statement.format(table=block.table))
            block.success()
    assert ice.load().metadata_location == before


def test_a_statement_finds_no_table_once_its_block_has_ended(spark: SparkSession, ice: Ice) -> None:
    """The name is the block's, and gone with it."""
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        block.success()
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        append(spark, block.table, 5, 8)


# -- others commit meanwhile -------------------------------------------------------------------------------------------


def foreign(spark: SparkSession, ice: Ice, begin: int, end: int) -> None:
    """Append as another application: pyiceberg would, and Spark signs what it writes with its application."""
    session_of(spark, ice).range(begin, end, 1, 1).selectExpr("id", "'a' AS part").writeTo(ice.name).option(
        "snapshot-property.spark.app.id", "another"
    ).append()


def session_of(spark: SparkSession, ice: Ice) -> SparkSession:
    """Return another session that knows the catalog."""
    other = spark.newSession()
    for key, value in ice.catalog.settings().items():
        other.conf.set(key, value)
    return other


def test_an_append_is_published_on_a_main_that_has_moved(spark: SparkSession, ice: Ice) -> None:
    """Whoever was first keeps their rows: Iceberg itself appends again on top of them."""
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        foreign(spark, ice, 20, 22)
        block.success()
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4, 5, 6, 7, 20, 21]
    ice.check()


@pytest.mark.parametrize("mode", MODES)
def test_one_new_key_that_two_jobs_upsert_is_there_once(spark: SparkSession, ice: Ice, mode: str) -> None:
    """The MERGE matches nothing, so that it only adds files: it is no append all the same. Done again, it matches."""
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
    """A compaction of other files changes no row that it has read."""
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
    """Iceberg would look for conflicts with the second since the first, and not since the block began; and it would
    publish the first with the sequence number of a commit that others have made.
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


def test_a_statement_that_names_the_plain_table_fails_its_block(spark: SparkSession, ice: Ice) -> None:
    """It went past the block, so that neither success nor "no change" is true of it. Its rows stay, so no retry mends
    it: each would write them again.
    """
    with (
        pytest.raises(NotCommittedError, match="past the block"),
        SafeWriter(spark, ice.name, format="iceberg") as block,
    ):
        append(spark, ice.name, 5, 8)
        block.success()
    assert ids(spark, ice.name) == list(range(8))
    assert ice.document().status == "rolled_back"


def test_another_table_in_the_block_is_written_as_ever(spark: SparkSession, ice: Ice) -> None:
    """Also one that was guarded before: nothing about a table or session says that it is."""
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
    """It says so at once: to wait for the table would be in vain."""
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


@pytest.mark.parametrize("mode", MODES)
def test_what_was_computed_from_rows_that_main_has_lost_is_not_published(
    spark: SparkSession, ice: Ice, mode: str
) -> None:
    """Somebody has set main back; Iceberg has several ways to refuse, and each is a conflict."""
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


# -- a branch as the target --------------------------------------------------------------------------------------------


def test_a_branch_is_written_and_main_is_not(spark: SparkSession, ice: Ice) -> None:
    """The block's table names it, too."""
    spark.sql(f"ALTER TABLE {ice.name} CREATE BRANCH audit")
    with SafeWriter(spark, f"{ice.name}.branch_audit", format="iceberg") as block:
        append(spark, block.table, 5, 8)
        spark.sql(f"DELETE FROM {block.table} WHERE id = 6")
        block.success()
    assert ids(spark, f"{ice.name}.branch_audit") == [0, 1, 2, 3, 4, 5, 7]
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4]


# -- other attempts ----------------------------------------------------------------------------------------------------


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


def test_a_retry_skips_what_is_published_though_its_snapshot_is_expired(
    spark: SparkSession, ice: Ice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process died before it could say so; the mark outlives the snapshot."""
    block = SafeWriter(spark, ice.name, format="iceberg").__enter__()
    append(spark, block.table, 5, 8)
    block._block.session.publish()
    _leave(spark, block)
    append(spark, ice.name, 20, 21)
    catalog, _, table = ice.name.partition(".")
    spark.sql(f"CALL {catalog}.system.expire_snapshots(table => '{table}', older_than => now(), retain_last => 1)")
    assert len(ice.history()) == 1

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
    """A REST server compares nothing but what a commit requires; and the fence is no change of main."""
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
    """By the clock of the JVM, whatever the process has slept through since it announced it."""
    with pytest.raises(ConflictError, match="too late"), SafeWriter(spark, ice.name, format="iceberg") as block:
        session: Any = block._block.session
        session._staging.shut()
        session._open(ice.document().attempt.prefix.rstrip("-"), ice.document().attempt.table_id, epoch_ms() - 1)
        append(spark, block.table, 5, 8)
        block.success()
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4]


def _leave(spark: SparkSession, block: SafeWriter) -> None:
    """Leave a block as a process that is killed does."""
    block._block.session.restore()
    writer._registry.close(spark, block._block.write)
    if block._heartbeat is not None:
        block._heartbeat.stop()


@pytest.mark.parametrize("published", [True, False])
def test_a_supervisor_tells_the_truth_about_a_dead_child(
    spark: SparkSession, ice: Ice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, published: bool
) -> None:
    """What it has published counts, what it has only staged does not; the catalog tells, without Spark."""
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


@pytest.mark.parametrize("commit_point", ["write", "success"])
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
    """And a batch that is delivered again is skipped."""
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
        store.delete(listed.key)  # as if it had been killed before it could note that the batch is done
    run()
    assert ids(spark, ice.name) == list(range(8))
    assert len(ice.history()) == 2
    assert [document.run_key.startswith("stream ") for document in ice.documents()] == [True]


# -- answers that are lost ---------------------------------------------------------------------------------------------


def test_a_publication_whose_answer_is_lost_is_read_back(
    spark: SparkSession, ice: Ice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has arrived, so the block is committed."""
    _lose_the_answer(monkeypatch, before=False)
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        block.success()
    assert ids(spark, ice.name) == list(range(8))
    ice.check()


def test_a_publication_that_never_arrives_is_fenced_off(
    spark: SparkSession, ice: Ice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then it is certain that it never will, and the retry writes the batch once."""
    with monkeypatch.context() as patched:
        _lose_the_answer(patched, before=True)
        with (
            pytest.raises(NotCommittedError, match="cannot any more"),
            SafeWriter(spark, ice.name, format="iceberg") as block,
        ):
            append(spark, block.table, 5, 8)
            block.success()
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4]
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        block.success()
    assert ids(spark, ice.name) == list(range(8))
    ice.check()


@pytest.mark.parametrize("ice", ["rest"], indirect=True)
def test_a_commit_that_its_client_sends_twice_lands_once(spark: SparkSession, s3: EmbeddedS3, ice: Ice) -> None:
    """The second copy is refused. Iceberg would then set main to the block's snapshot again, back behind what others
    have committed since.
    """

    def twice(request: Request) -> Reply:
        request.apply()
        foreign(spark, ice, 20, 22)
        return request.apply()

    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        rule = s3.wire.add(Rule(Match(operations={"CatalogChange"}), twice))
        block.success()
    assert rule.hits == 1
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4, 5, 6, 7, 20, 21]
    ice.check()


@pytest.mark.parametrize("ice", ["rest"], indirect=True)
def test_a_publication_is_tried_more_often_than_iceberg_does_by_itself(
    spark: SparkSession, s3: EmbeddedS3, ice: Ice
) -> None:
    """Its four retries are too few beside seven other writers."""
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        rule = s3.wire.add(Rule(Match(operations={"CatalogChange"}), Refuse(409), times=5))
        block.success()
    assert rule.hits == 5
    assert ids(spark, ice.name) == list(range(8))


@pytest.mark.parametrize("ice", ["rest"], indirect=True)
def test_a_publication_sets_no_property_of_others_back(spark: SparkSession, s3: EmbeddedS3, ice: Ice) -> None:
    """Also those in which the block keeps its own number of retries: a server takes changes, not whole tables."""
    name = "commit.retry.num-retries"

    def change() -> None:
        session_of(spark, ice).sql(f"ALTER TABLE {ice.name} SET TBLPROPERTIES ('{name}' = '50')")

    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        s3.wire.add(Rule(Match(operations={"CatalogChange"}), Freeze(change)))
        block.success()
    assert ice.load().properties[name] == "50"
    assert ids(spark, ice.name) == list(range(8))


def _lose_the_answer(monkeypatch: pytest.MonkeyPatch, *, before: bool) -> None:
    """Let the connection break before the publication is sent, or after its commit."""
    from safewriter.objects.store import StoreError
    from safewriter.tables.iceberg.session import IcebergSession

    publish = IcebergSession.publish

    def broken(session: Any) -> None:
        if session._sent:
            return
        if before:
            session._sent = True
        else:
            publish(session)
        raise StoreError("the connection was reset")

    monkeypatch.setattr(IcebergSession, "publish", broken)
