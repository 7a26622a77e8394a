"""A guarded block on an Iceberg table: real Spark, catalogs of each kind, the embedded S3.

Glue is moto's, which checks no version of a table; the emulator does (scripts/emulator/glue.py).
"""

from __future__ import annotations

import itertools
import logging
import os
import uuid
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import pytest

from safewriter import DeadlineError, NotCommittedError, SafeWriter, UnsupportedError, writer
from safewriter.journal import Journal
from safewriter.objects.s3 import S3ObjectStore
from safewriter.settings import Settings
from safewriter.state import NO_CHANGE
from safewriter.supervision import Supervision
from safewriter.tables.iceberg.publishing import make_branch
from tests.support.attempts import next_attempt
from tests.support.deadlines import FarDeadline, wait_for_watchdog
from tests.support.hygiene import wait_for_hygiene

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

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
PLAIN = [pytest.param(name, marks=[pytest.mark.matrix, pytest.mark.aws]) for name in ("plain_s3", "plain_s3a")]
everywhere = pytest.mark.parametrize("ice", [*CATALOGS, *PLAIN], indirect=True)
"""A test that also runs with Iceberg's own way to S3, where the names of files bear no mark."""


@pytest.fixture(params=CATALOGS)
def ice(spark: SparkSession, s3: EmbeddedS3, lake: Lake, request: pytest.FixtureRequest) -> Ice:
    """A table of the test's own with five rows, partitioned by a hidden column, in each kind of catalog."""
    catalog: Catalog = request.getfixturevalue(request.param)
    table = catalog.table(s3.observer())
    spark.sql(f"CREATE TABLE {table.name} (id LONG, part STRING) USING iceberg PARTITIONED BY (bucket(2, part))")
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


SHORT = {("append", "copy-on-write"), ("merge", "merge-on-read")}
"""What scripts/test runs of them; the others are for the matrix."""


@everywhere
@pytest.mark.parametrize(
    ("name", "mode"),
    [
        pytest.param(*case, marks=() if case in SHORT else pytest.mark.matrix)
        for case in itertools.product(STATEMENTS, ["copy-on-write", "merge-on-read"])
    ],
)
def test_an_operation_is_dropped_by_a_failed_block_and_published_by_the_next(
    spark: SparkSession, ice: Ice, name: str, mode: str
) -> None:
    """Main shows nothing of the failed attempt, and one snapshot of the retry; nothing is left behind."""
    statement, after = STATEMENTS[name]
    spark.sql(
        f"ALTER TABLE {ice.name} SET TBLPROPERTIES ('write.delete.mode' = '{mode}', 'write.update.mode' = '{mode}',"
        f" 'write.merge.mode' = '{mode}')"
    )
    with pytest.raises(AbandonedError), SafeWriter(spark, ice.name, format="iceberg") as block:
        spark.sql(statement.format(table=block.table, matched=MATCHED))
        assert ids(spark, block.table) == after, "the block sees its own rows"
        raise AbandonedError
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4]
    assert len(ice.history()) == 1
    ice.check()

    with SafeWriter(spark, ice.name, format="iceberg") as block:
        spark.sql(statement.format(table=block.table, matched=MATCHED))
        block.success()
    assert ids(spark, ice.name) == after
    assert len(ice.history()) == 2
    assert ice.document().status == "committed"
    assert ice.refs() == {"main"}
    assert mode == "merge-on-read" or ice.rows() == len(after), "the totals in the metadata are main's"
    ice.check()
    wait_for_hygiene()
    assert ice.orphans() == set()


@pytest.mark.parametrize("ice", ["lite", "rest"], indirect=True)
def test_main_shows_nothing_before_success(spark: SparkSession, ice: Ice) -> None:
    """The rows are on a branch until then, and the property that allows it was set and told."""
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        assert ice.rows() == 5
        block.success()
        assert ice.rows() == 8


def test_setting_the_property_is_announced(spark: SparkSession, ice: Ice, caplog: pytest.LogCaptureFixture) -> None:
    """A table without `write.wap.enabled` gets it, with a line in the log."""
    with caplog.at_level(logging.WARNING), SafeWriter(spark, ice.name, format="iceberg") as block:
        block.success()
    assert "setting write.wap.enabled" in caplog.text
    assert block.checkpoint is not None
    assert block.checkpoint.reason == NO_CHANGE


def test_setting_the_property_can_be_refused(spark: SparkSession, ice: Ice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the block says what to do, and nothing is claimed."""
    monkeypatch.setenv("SW_ICEBERG_SET_WAP", "False")
    with pytest.raises(UnsupportedError, match="ALTER TABLE"), SafeWriter(spark, ice.name, format="iceberg"):
        pass
    assert ice.documents() == []


@everywhere
@pytest.mark.matrix
def test_a_branch_that_was_made_without_an_answer_is_used(
    spark: SparkSession, ice: Ice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that asks again by itself, as Amazon's do, is then told that it came too late."""

    def make_and_be_refused(*arguments: Any) -> bool:
        assert make_branch(*arguments)
        return False

    monkeypatch.setattr("safewriter.tables.iceberg.session.make_branch", make_and_be_refused)
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        block.success()
    assert ids(spark, ice.name) == list(range(8))
    assert ice.refs() == {"main"}


def test_an_append_is_published_on_a_main_that_has_moved(spark: SparkSession, ice: Ice) -> None:
    """Whoever was first keeps their rows: the staged append is applied again on top of them."""
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        foreign(spark, ice, 20, 22)
        block.success()
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4, 5, 6, 7, 20, 21]
    assert len(ice.history()) == 3
    ice.check()
    spark.sql(f"DELETE FROM {ice.name} WHERE id = 6")  # Spark reads and rewrites what was applied without it
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4, 5, 7, 20, 21]


@everywhere
def test_what_is_no_append_fails_on_a_main_that_has_moved(spark: SparkSession, ice: Ice) -> None:
    """A rewrite of rows that others have changed meanwhile would have to be computed anew: the block says so."""
    with (
        pytest.raises(NotCommittedError, match="main has moved"),
        SafeWriter(spark, ice.name, format="iceberg") as block,
    ):
        spark.sql(f"UPDATE {block.table} SET id = id + 10 WHERE id = 1")
        foreign(spark, ice, 20, 22)
        block.success()
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4, 20, 21]
    assert ice.document().status == "rolled_back"
    ice.check()


def foreign(spark: SparkSession, ice: Ice, begin: int, end: int) -> None:
    """Append from a session that knows nothing of the block."""
    append(session_of(spark, ice), ice.name, begin, end)


def session_of(spark: SparkSession, ice: Ice) -> SparkSession:
    """Return another session that knows the catalog."""
    other = spark.newSession()
    for key, value in ice.catalog.settings().items():
        other.conf.set(key, value)
    return other


def test_what_tasks_of_a_failed_statement_have_written_is_removed(spark: SparkSession, ice: Ice) -> None:
    """Nothing was staged, so no snapshot names their files; their own names do."""
    with pytest.raises(Exception, match="Division by zero"), SafeWriter(spark, ice.name, format="iceberg") as block:
        frame = spark.range(0, 40, 1, 4).selectExpr("id", "if(id = 39, raise_error('Division by zero'), 'a') AS part")
        frame.writeTo(block.table).append()
    wait_for_hygiene()
    assert len(ice.keys()) > 0
    assert ice.orphans() == set()
    ice.check()


@pytest.mark.matrix
@everywhere
def test_what_a_block_writes_bears_the_mark_of_its_attempt(spark: SparkSession, ice: Ice) -> None:
    """A data file, a manifest and a list of manifests; but nothing where the way to S3 is Iceberg's own as it is."""
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        block.success()
    marked = [path for path in ice.referred() if "/sw-" in path]
    assert len(marked) == (0 if ice.catalog.name.startswith("plain") else 3)


CREATIONS = {
    "as select": "CREATE TABLE {table} USING iceberg AS SELECT id, 'a' AS part FROM range(3)",
    "as select, staged": (
        "CREATE TABLE {table} USING iceberg TBLPROPERTIES ('write.wap.enabled' = 'true')"
        " AS SELECT id, 'a' AS part FROM range(3)"
    ),
}


@everywhere
@pytest.mark.parametrize("creation", ["as select", pytest.param("as select, staged", marks=pytest.mark.matrix)])
def test_a_creation_counts_or_leaves_an_empty_table(
    spark: SparkSession, ice: Ice, creation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failed attempt's rows are gone, the retry appends to the table that is left, a success is skipped."""
    monkeypatch.setenv("SOAL_RUN_KEY", f"create-{uuid.uuid4().hex}")
    new = replace(ice, name=f"{ice.name}_{len(creation)}")
    with pytest.raises(AbandonedError), SafeWriter(spark, new.name, format="iceberg") as block:
        spark.sql(CREATIONS[creation].format(table=block.table))
        raise AbandonedError
    assert new.document().status == "rolled_back"
    assert (ids(spark, new.name), new.history()) == ([], [])
    wait_for_hygiene()
    assert new.orphans() == set()

    with (
        pytest.raises(Exception, match="ALREADY_EXISTS") as raised,
        SafeWriter(spark, new.name, format="iceberg") as block,
    ):
        spark.sql(CREATIONS[creation].format(table=block.table))
    assert "append to it" in "".join(raised.value.__notes__)

    with SafeWriter(spark, new.name, format="iceberg") as block:
        append(spark, block.table, 0, 3)
        block.success()
    assert (ids(spark, new.name), len(new.history())) == ([0, 1, 2], 1)
    new.check()


@pytest.mark.matrix
@pytest.mark.parametrize("succeeds", [True, False])
def test_a_block_that_does_not_create_its_table_changes_nothing(
    spark: SparkSession, ice: Ice, *, succeeds: bool
) -> None:
    """There is no table before and after; the program's own exception goes on."""
    new = replace(ice, name=f"{ice.name}_never")
    with suppress(AbandonedError), SafeWriter(spark, new.name, format="iceberg") as block:
        if not succeeds:
            raise AbandonedError
        block.success()
    assert new.document().status == ("committed" if succeeds else "rolled_back")
    assert new.document().attempt.cleaned
    assert not spark.catalog.tableExists(new.name)


@pytest.mark.matrix
@pytest.mark.parametrize("creation", CREATIONS)
def test_a_creation_is_one_commit(spark: SparkSession, ice: Ice, creation: str) -> None:
    """The table and its rows, with the mark of the write."""
    new = replace(ice, name=f"{ice.name}_{len(creation)}")
    with SafeWriter(spark, new.name, format="iceberg") as block:
        spark.sql(CREATIONS[creation].format(table=block.table))
        block.success()
    document = new.document()
    assert (document.status, document.attempt.rows, ids(spark, new.name)) == ("committed", 3, [0, 1, 2])
    assert (len(new.history()), new.refs()) == (1, {"main"})
    new.check()


@pytest.mark.matrix
def test_a_creation_in_two_commits_fails(spark: SparkSession, ice: Ice) -> None:
    """A kill between the two would leave half; what has landed is taken back."""
    new = replace(ice, name=f"{ice.name}_new")
    with (
        pytest.raises(NotCommittedError, match="create the table before"),
        SafeWriter(spark, new.name, format="iceberg") as block,
    ):
        spark.sql(CREATIONS["as select"].format(table=block.table))
        append(spark, block.table, 3, 5)
        block.success()
    assert ids(spark, new.name) == []
    new.check()


def test_a_committed_write_is_skipped(spark: SparkSession, ice: Ice, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second attempt of the run lands nowhere, whatever it writes, and leaves no branch."""
    monkeypatch.setenv("SOAL_RUN_KEY", f"skip-{uuid.uuid4().hex}")
    with SafeWriter(spark, ice.name, format="iceberg", step="one") as block:
        append(spark, block.table, 5, 8)
        block.success()
    next_attempt(monkeypatch)
    with SafeWriter(spark, ice.name, format="iceberg", step="one") as again:
        assert again.already_committed
        append(spark, again.table, 5, 8)
        again.success()
    assert ids(spark, ice.name) == list(range(8))
    assert ice.refs() == {"main"}


@pytest.mark.matrix
def test_a_table_of_format_version_3_is_refused(spark: SparkSession, ice: Ice) -> None:
    """Whoever settles could not write its metadata."""
    spark.sql(f"ALTER TABLE {ice.name} SET TBLPROPERTIES ('format-version' = '3')")
    with (
        pytest.raises(UnsupportedError, match="format version 3"),
        SafeWriter(spark, ice.name, format="iceberg"),
    ):
        pass


def test_a_replacement_of_the_table_fails_and_main_shows_its_rows_again(spark: SparkSession, ice: Ice) -> None:
    """It takes main away, which no branch can hold back: the block fails, and main is put back."""
    with (
        pytest.raises(NotCommittedError, match="replaced the whole table"),
        SafeWriter(spark, ice.name, format="iceberg") as block,
    ):
        spark.sql(f"CREATE OR REPLACE TABLE {block.table} USING iceberg AS SELECT 1L AS id, 'x' AS part")
        block.success()
    assert ice.document().status == "rolled_back"
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4]
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


@everywhere
def test_a_supervisor_publishes_what_a_dead_child_has_staged(
    spark: SparkSession, ice: Ice, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its journal says that something may be staged; the catalog tells the rest, without Spark."""
    path = tmp_path / "journal"
    journal = Journal(path)
    supervision = Supervision(journal, Settings.from_environment(os.environ))
    monkeypatch.setenv("SOAL_JOURNAL", str(path))
    if (password := ice.catalog.spark.get("jdbc.password")) is not None:
        monkeypatch.setenv("PGPASSWORD", password)  # which no checkpoint holds
    block = SafeWriter(spark, ice.name, format="iceberg")
    block.__enter__()
    append(spark, block.table, 5, 8)
    block._block.session.restore()  # nothing more of the child
    writer._registry.close(spark, block._block.write)
    with journal:
        (report,) = supervision.settle(budget_ms=60_000)
    assert (report.status, report.rows, report.format) == ("committed", 3, "iceberg")
    assert ids(spark, ice.name) == list(range(8))


@pytest.mark.matrix
def test_two_tables_of_one_run_are_settled_independently(spark: SparkSession, ice: Ice) -> None:
    """The first stays published when the second fails."""
    other = f"{ice.name}_other"
    spark.sql(f"CREATE TABLE {other} (id LONG, part STRING) USING iceberg")
    with SafeWriter(spark, ice.name, format="iceberg") as first:
        append(spark, first.table, 5, 8)
        first.success()
    with pytest.raises(AbandonedError), SafeWriter(spark, other, format="iceberg") as second:
        append(spark, second.table, 0, 3)
        raise AbandonedError
    assert (len(ids(spark, ice.name)), ids(spark, other)) == (8, [])


def both(spark: SparkSession, other: SparkSession, one: Ice, two: Ice, fail: str = "") -> None:
    """The pattern of PROTOCOL.md: both staged, then published one right after the other."""
    with (
        SafeWriter(spark, one.name, format="iceberg", step="one", commit_point="success") as first,
        SafeWriter(other, two.name, format="iceberg", step="two", commit_point="success") as second,
    ):
        if not first.already_committed:
            append(spark, first.table, 5, 8)
        if not second.already_committed:
            append(other, second.table, 5, 9)
        if fail == "before":
            raise AbandonedError
        first.success()
        if fail == "between":
            raise AbandonedError
        second.success()


@pytest.mark.matrix
@pytest.mark.parametrize(("fail", "rows"), [("before", (5, 5)), ("between", (8, 5))])
def test_two_tables_get_both_or_neither_unless_it_ends_between_their_publishings(
    spark: SparkSession, s3: EmbeddedS3, ice: Ice, fail: str, rows: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it was, the retry writes exactly what is missing."""
    monkeypatch.setenv("SOAL_RUN_KEY", f"both-{uuid.uuid4().hex}")
    other, two = session_of(spark, ice), ice.catalog.table(s3.observer())
    spark.sql(f"CREATE TABLE {two.name} (id LONG, part STRING) USING iceberg")
    append(spark, two.name, 0, 5)
    with pytest.raises(AbandonedError):
        both(spark, other, ice, two, fail)
    assert (len(ids(spark, ice.name)), len(ids(spark, two.name))) == rows
    next_attempt(monkeypatch)
    both(spark, other, ice, two)
    assert (ids(spark, ice.name), ids(spark, two.name)) == (list(range(8)), list(range(9)))
    assert ice.refs() == two.refs() == {"main"}


@pytest.mark.matrix
@pytest.mark.parametrize(("commit_point", "rows"), [("write", 8), ("success", 5)])
def test_a_deadline_publishes_or_drops_what_is_staged(
    spark: SparkSession,
    ice: Ice,
    monkeypatch: pytest.MonkeyPatch,
    commit_point: Literal["write", "success"],
    rows: int,
) -> None:
    """The watchdog settles while the block still runs: what is staged counts, unless only `success()` does."""
    far = FarDeadline.of(monkeypatch)
    with (
        pytest.raises(DeadlineError),
        SafeWriter(spark, ice.name, format="iceberg", commit_point=commit_point) as block,
    ):
        append(spark, block.table, 5, 8)
        far.come()
        wait_for_watchdog(block)
        raise AbandonedError
    assert len(ids(spark, ice.name)) == rows
    wait_for_hygiene()
    assert ice.refs() == {"main"}
    ice.check()
