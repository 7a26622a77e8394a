"""An Iceberg block's session with a JVM of plain objects; tests/integration/safewriter has a real one."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.clientserver import ClientServer

from safewriter.errors import NotCommittedError, UnguardedSessionError, UnsupportedError
from safewriter.tables.iceberg.metadata import LiveTable
from safewriter.tables.iceberg.name import TableName
from safewriter.tables.iceberg.session import IcebergSession, StagingState
from safewriter.tables.iceberg.table import DECIDED_MS
from safewriter.tables.session import TableState
from tests.unit.safewriter.tables.iceberg.staging import (
    CATALOG,
    NOW_MS,
    TABLE,
    JavaError,
    PySparkError,
    Staging,
    opened,
)

# -- before ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["spark.wap.branch", "spark.wap.id"])
def test_a_session_that_stages_elsewhere_is_refused(session: IcebergSession, key: str) -> None:
    """Iceberg would write to that branch instead of the block's."""
    session.verify()
    session.spark.conf[key] = "theirs"  # type: ignore[index]
    with pytest.raises(UnguardedSessionError, match=f"{key} is set to 'theirs'"):
        session.verify()


def test_a_block_begins_with_the_catalog_of_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has sent no request yet. Java gets the table's name part by part: a part may hold a dot."""
    asked: list[Any] = []

    class Java(SimpleNamespace):
        def settings(self, *arguments: Any) -> str:
            asked.extend(arguments)
            return json.dumps(settings)

    monkeypatch.setattr(IcebergSession, "java_class", lambda _, name: Java(name=name))
    prefix = "spark.sql.catalog.lake"
    settings = {prefix: "org.apache.iceberg.spark.SparkCatalog", **{f"{prefix}.{key}": CATALOG[key] for key in CATALOG}}
    spark: Any = SimpleNamespace(
        _jvm=object(),
        version="4.1.4",
        _jsparkSession=object(),
        sparkContext=SimpleNamespace(_gateway=object.__new__(ClientServer)),
    )
    made = IcebergSession(spark, "lake.`d.b`.t.branch_audit")
    assert (made.table, made.secrets, made.has_begun) == ("lake.`d.b`.t.branch_audit", CATALOG, False)
    assert made._java.name == "io.soal.iceberg.StagedTable"
    assert asked == [made.jspark, prefix]
    assert made._table == (made.jspark, "lake", ["d.b", "t"])
    assert made.report() == StagingState(passed=False, answered=True)


def show(session: IcebergSession, table: dict[str, Any] | None) -> None:
    """Let the catalog show a table."""
    pointer: Any = SimpleNamespace(read=lambda: None if table is None else LiveTable(table, None, "s3://lake/7.json"))
    session._pointer = pointer


@pytest.mark.parametrize(("target", "version"), [("main", 7), ("audit", 8)])
def test_a_table_is_looked_at_in_its_catalog(
    session: IcebergSession, monkeypatch: pytest.MonkeyPatch, target: str, version: int
) -> None:
    """The properties for a checkpoint hold no secret."""
    session._name = TableName.parse("lake.db.t" if target == "main" else f"lake.db.t.branch_{target}")
    show(session, TABLE)
    state = TableState(version, "uuid", ("v2",), {}, modified_ms=5, sequence=3, catalog={"type": "rest"})
    assert session.state() == state
    assert session._live is not None
    assert session._live.location == "s3://lake/7.json", "Java need not read it again"
    assert session.catalog == {"type": "rest"}
    assert session.secrets == CATALOG


def test_an_empty_table_gets_its_first_snapshot(session: IcebergSession, done: list[str]) -> None:
    """A fence is a tag on one."""
    session._java = SimpleNamespace(begin=lambda _, *names: done.append(f"begun {names}"))
    show(session, {**TABLE, "refs": {}})
    assert session.state().version == 0
    assert done == ["begun ('lake', ['db', 't'])"]


@pytest.mark.parametrize(
    ("table", "name", "said"),
    [
        (None, "lake.db.t", r"CREATE TABLE IF NOT EXISTS `lake`\.`db`\.`t`"),
        (TABLE, "lake.db.t.branch_other", "CREATE BRANCH `other`"),
        ({**TABLE, "refs": {"x": {"snapshot-id": 7, "type": "tag"}}}, "lake.db.t.branch_x", "CREATE BRANCH `x`"),
    ],
)
def test_what_is_not_there_is_created_before_the_block(
    session: IcebergSession, table: dict[str, Any] | None, name: str, said: str
) -> None:
    """A table or a branch; a tag does not count as one."""
    session._name = TableName.parse(name)
    show(session, table)
    with pytest.raises(UnsupportedError, match=said):
        session.state()


@pytest.mark.parametrize(
    "place",
    [
        {"location": None},
        {"properties": {"write.data.path": "../tmp/x"}},
        {"properties": {"write.metadata.path": "file:///tmp/x"}},
        {"properties": {"write.object-storage.path": "/data"}},
        {"properties": {"write.data.path": "FILE:///tmp/x"}},
        {"location": "warehouse/t"},
        {"location": "s3://lake/__magic_job-1/t"},
        {"properties": {"write.folder-storage.path": "s3a://lake/x/__magic/t"}},
    ],
)
def test_a_table_whose_files_nobody_else_finds_is_refused(session: IcebergSession, place: dict[str, Any]) -> None:
    """A commit would name files that are lost with the process, or that S3A's magic committer never completes."""
    show(session, {**TABLE, **place})
    with pytest.raises(
        UnsupportedError, match=f"its {next(iter(place.get('properties', place)))} is .*set it to a URI"
    ):
        session.state()


def test_a_table_s_files_may_go_to_another_bucket(session: IcebergSession) -> None:
    """Whatever its scheme: the session has the file system."""
    show(session, {**TABLE, "properties": {"write.data.path": "s3a://other/x", "write.metadata.path": "gs://m"}})
    assert session.state().version == 7


def test_nothing_of_a_block_is_undone_or_looked_for_by_name(session: IcebergSession) -> None:
    """Before its publication it leaves nothing in the table."""
    assert session.undo_obstacle(TableState(7, "uuid", ("v9",), {})) is None
    assert session.may_have_left_files(session.report()) is False
    assert session.report() == StagingState(passed=False, answered=True, noted=False)
    assert session.report().error_of(ValueError("theirs")) is None


# -- inside ------------------------------------------------------------------------------------------------------------


def test_an_error_in_a_skipped_block_is_the_scripts_own(session: IcebergSession) -> None:
    """The block has a transaction that is never published, so the guard makes no statement fail."""
    assert session.was_skipped(ValueError("theirs")) is False


def test_a_block_has_begun_once_its_transaction_is_open(session: IcebergSession) -> None:
    """Before that no statement can have used the block's table."""
    assert session.has_begun is False
    session._staging = SimpleNamespace()
    assert session.has_begun is True


@pytest.mark.parametrize(
    ("latest_start_ms", "until_ms"),
    [(None, NOW_MS + DECIDED_MS), (NOW_MS + 1, NOW_MS + 1), (10**15, NOW_MS + DECIDED_MS)],
)
def test_no_block_publishes_once_its_fence_may_have_expired(
    session: IcebergSession,
    done: list[str],
    monkeypatch: pytest.MonkeyPatch,
    latest_start_ms: int | None,
    until_ms: int,
) -> None:
    """However far away the deadline is, and also without one."""
    opened: list[Any] = []
    kept: dict[str, str] = {}

    def java_open(*arguments: Any) -> Staging:
        opened.extend(arguments)
        return Staging(done)

    session._java = SimpleNamespace(open=java_open)
    monkeypatch.setattr("safewriter.tables.iceberg.session.epoch_ms", lambda: NOW_MS)
    monkeypatch.setattr(session, "begin_group", lambda group: done.append(f"group {group}"))
    spark: Any = SimpleNamespace(conf=SimpleNamespace(set=kept.__setitem__))
    session.spark = spark

    session._open("sw-0-1-2", "uuid", latest_start_ms)

    assert session._live is not None
    own = ["main", "sw-0-1-2", "uuid", session._live.location, until_ms]
    assert opened == [None, "lake", ["db", "t"], *own, "", False]
    assert session.table == "`safewriter`.`sw-0-1-2`.`db`.`t`"
    assert kept == {
        "spark.sql.catalog.safewriter": "io.soal.iceberg.StagingCatalog",
        "spark.sql.catalog.safewriter.cache-enabled": "false",
    }
    session.restore()
    assert done == ["group safewriter-sw-0-1-2", "shut"]


@pytest.mark.parametrize(("journal", "kept"), [("journal", ("journal", "nonce")), (None, None), ("", None)])
def test_a_block_is_opened_for_its_attempt(
    session: IcebergSession, monkeypatch: pytest.MonkeyPatch, journal: str | None, kept: tuple[str, str] | None
) -> None:
    """Without a supervisor there is no journal."""
    began: list[Any] = []
    monkeypatch.setattr(session, "_open", lambda *arguments: began.extend(arguments))
    attempt = SimpleNamespace(prefix="sw-0-1-nonce-", table_id="uuid")
    document = SimpleNamespace(attempt=attempt, owner="nonce")
    opening: Any = SimpleNamespace(document=document, journal=journal, latest_start_ms=5)

    session.begin(opening)

    assert began == ["sw-0-1-nonce", "uuid", 5]
    assert session._journal == kept


def test_a_skipped_block_is_opened_on_the_table_as_it_is(
    session: IcebergSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name belongs to no attempt, so no publication could bear it."""
    began: list[Any] = []
    monkeypatch.setattr(session, "_open", lambda *arguments, skipped: began.extend((*arguments, skipped)))
    show(session, TABLE)
    session.skip(write_key="sw-0123456789abcdef", nonce="nonce")
    assert began == ["sw-0123456789abcdef-skipped-nonce", "uuid", None, True]


def test_a_block_that_never_opened_is_shut_all_the_same(session: IcebergSession, done: list[str]) -> None:
    """An open block refuses statements from then on."""
    session.shut("its end")
    opened(session, done)
    session.shut("its end")
    assert done == ["shut"]


KEY = "sw-0123456789abcdef0123456789abcdef"
SNAPSHOTS = [
    {"snapshot-id": 5},
    {"snapshot-id": 6, "parent-snapshot-id": 5, "summary": {"safewriter.attempt": f"{KEY}-1-0123456789abcdef"}},
    {"snapshot-id": 7, "parent-snapshot-id": 6},
]


def _at(head: int, since: int = 0) -> dict[str, Any]:
    """Return a table whose main shows a snapshot; `since`: the first of those that have not expired."""
    refs = {"main": {"snapshot-id": head, "type": "branch"}}
    return {**TABLE, "refs": refs, "snapshots": SNAPSHOTS[since:]}


@pytest.mark.parametrize(("begun", "ended"), [(_at(7), _at(6)), (_at(5), _at(5)), (_at(7), _at(7, 2)), (_at(7), None)])
def test_a_skipped_write_that_main_shows_as_before_is_a_success(
    session: IcebergSession, monkeypatch: pytest.MonkeyPatch, begun: dict[str, Any], ended: dict[str, Any] | None
) -> None:
    """Also if main had left the write before, if its snapshot has expired, or if the table is gone."""
    monkeypatch.setattr(session, "_open", lambda *_, skipped: None)
    show(session, begun)
    session.skip(write_key=KEY, nonce="nonce")
    show(session, ended)
    session.check_skipped()


@pytest.mark.parametrize(("head", "since", "told"), [(5, 0, True), (7, 0, False), (6, 1, False), (7, 2, False)])
def test_a_skipped_write_that_main_does_not_show_is_told(
    session: IcebergSession,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    head: int,
    since: int,
    *,
    told: bool,
) -> None:
    """The snapshot is listed, and the branch's whole history is without it; after an expiry nobody can tell."""
    monkeypatch.setattr(session, "_open", lambda *_, skipped: None)
    show(session, _at(head, since))
    session.skip(write_key=KEY, nonce="nonce")
    session.check_skipped()
    assert ("snapshot 6 is no longer in the history of main" in caplog.text) == told


def test_a_skipped_write_from_which_main_was_set_back_is_none(
    session: IcebergSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script that rolls its table back inside the block does so again on a retry, whose write is skipped."""
    monkeypatch.setattr(session, "_open", lambda *_, skipped: None)
    show(session, _at(7))
    session.skip(write_key=KEY, nonce="nonce")
    show(session, _at(5))
    with pytest.raises(NotCommittedError, match="does not show snapshot 6 of this write any more"):
        session.check_skipped()


@pytest.mark.parametrize("kind", [JavaError, PySparkError])
def test_a_block_whose_statement_runs_or_wrote_elsewhere_has_written(
    session: IcebergSession, done: list[str], kind: type[JavaError | PySparkError]
) -> None:
    """Java throws an exception then; any other exception is raised."""
    staging = opened(session, done)
    assert session.has_written() is True
    staging.stray = kind("UnsupportedOperationException")
    assert session.has_written() is True
    staging.stray = kind("ForbiddenException")
    with pytest.raises(kind):
        session.has_written()


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({"safewriter.sw-0123456789ab-3-0123456789abcdef": "1 2 3 4"}, 0),
        ({"safewriter.sw-ffff": "1"}, None),
        ({}, None),
    ],
)
def test_a_table_that_names_an_attempt_of_the_write_says_so(
    session: IcebergSession, properties: dict[str, str], named: int | None
) -> None:
    """A claim without a document needs it: the bucket may have been emptied."""
    show(session, {**TABLE, "properties": properties})
    session.state()
    assert session.named_since("sw-0123456789abcdef0123456789abcdef") == named
