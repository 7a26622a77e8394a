"""A Delta block's session, without a JVM: obstacles that refuse it, the gate that it opens, skipped blocks."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.errors import BlockOpenError, UnguardedSessionError, UnsupportedError
from safewriter.record.document import CommitPoint
from safewriter.tables.delta.gate import SKIPPED, GateState, GateStatus
from safewriter.tables.session import Opening, TableState
from tests.support.java_errors import Java, converted, existing, raised, refused, wrapped
from tests.unit.safewriter.tables.delta.driverless import JavaError, session

if TYPE_CHECKING:
    from safewriter.tables.delta.session import DeltaSession


@pytest.mark.parametrize(
    ("features", "properties", "obstacle"),
    [
        (("deletionVectors",), {}, None),
        (
            ("zebra", "aardvark", "deletionVectors"),
            {},
            "it uses aardvark, zebra, under which an undo without Spark is not known to be safe",
        ),
        (("zebra",), {"delta.appendOnly": "true"}, "it is append-only"),
    ],
)
def test_a_table_with_what_no_undo_knows_is_an_obstacle(
    features: tuple[str, ...], properties: dict[str, str], obstacle: str | None
) -> None:
    """They are named in alphabetical order."""
    assert session().undo_obstacle(TableState(3, "id", features, properties)) == obstacle


def surroundings(one: DeltaSession, monkeypatch: pytest.MonkeyPatch, **found: object) -> None:
    """Let the log store report this about the session."""
    said = json.dumps({"busy": False, "endpoint": "", **found})
    monkeypatch.setattr(one, "java_class", lambda _: SimpleNamespace(of=lambda *_: said))
    one._gates = SimpleNamespace(protocol=lambda: 10)


def test_a_driver_without_the_log_store_is_told_what_to_add() -> None:
    """Both the class path and the setting of the table's own scheme."""
    with pytest.raises(UnguardedSessionError, match=r"ConditionalS3LogStore is not on the driver's class path") as told:
        session().verify()
    assert "safewriter.configure_spark(builder): it sets spark.delta.logStore.s3a.impl to " in str(told.value)


@pytest.mark.parametrize(
    ("key", "found", "named"),
    [
        ("spark.delta.logStore.s3.impl", "", "spark.delta.logStore.s3.impl is not set"),
        ("spark.delta.logStore.class", "org.Other", "spark.delta.logStore.class is org.Other"),
    ],
)
def test_a_setting_that_lets_a_commit_past_the_gate_is_named(
    key: str, found: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its value, and with the setting that takes its place."""
    one = session()
    surroundings(one, monkeypatch, key=key, found=found)
    with pytest.raises(UnguardedSessionError, match=named) as told:
        one.verify()
    own = key if key.endswith(".impl") else "spark.delta.logStore.s3a.impl"
    assert f"it sets {own} to " in str(told.value)


def test_a_session_in_which_a_block_is_open_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate knows blocks that this process does not: those of another copy of the module, or of a clone."""
    one: Any = session()
    surroundings(one, monkeypatch, busy=True)
    with pytest.raises(BlockOpenError, match="another SafeWriter block is open on this Spark session"):
        one.verify()
    surroundings(one, monkeypatch)
    one.verify()
    one._gates.protocol = lambda: 5
    with pytest.raises(UnguardedSessionError, match="speaks protocol 5, this SafeWriter speaks 10"):
        one.verify()


@pytest.mark.parametrize(
    ("theirs", "ours", "taken"),
    [
        ("", None, True),
        ("http://127.0.0.1:9000/", "http://127.0.0.1:9000", True),
        ("http://127.0.0.1:9000", None, False),
        ("", "http://127.0.0.1:9000", False),
    ],
)
def test_the_gate_s_reading_counts_where_a_settler_asks_the_same_s3(
    theirs: str, ours: str | None, *, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise success() reads the version as a settler would, and notices that it cannot see it."""
    one: Any = session()
    monkeypatch.setattr("safewriter.tables.delta.session.custom_endpoint", lambda: ours)
    surroundings(one, monkeypatch, endpoint=theirs)
    one.verify()
    seen = {"passed": True, "tries": 1, "version": 4, "refusal": "", "stray": "", "noted": False}
    read = {"seen": lambda: json.dumps({"status": "landed", **seen}), "landed": lambda: '{"body": "{}", "bytes": 7}'}
    one._gate = SimpleNamespace(**read)
    assert (one.report().body, one.report().added_bytes) == ((b"{}", 7) if taken else (None, 0))
    one._gate.landed = lambda: None
    assert one.report().body is None
    one._gate = SimpleNamespace(**{**read, "seen": lambda: json.dumps({"status": "none", **seen})})
    assert one.report().body is None


@pytest.mark.parametrize(
    "feature", ["catalogManaged", "catalogOwned-preview", "coordinatedCommits-preview", "managedCommit-dev"]
)
def test_a_table_whose_commits_a_catalog_makes_is_refused(feature: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under any of the names that Delta has given the feature over its releases."""
    one = session()
    state = {"version": 3, "modifiedMs": 5, "id": "id", "features": [feature, "appendOnly"], "properties": {}}
    found = SimpleNamespace(json=lambda: json.dumps(state))
    monkeypatch.setattr(one, "java_class", lambda _: SimpleNamespace(of=lambda *_: found))
    with pytest.raises(UnsupportedError, match=feature):
        one.state()


MANAGED = "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION"


@pytest.mark.parametrize(
    ("java", "is_managed"),
    [
        (existing(MANAGED, "no"), True),
        (existing("DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED", "no"), True),
        (Java("a.ExecutionException", "failed", existing(MANAGED, "no")), True),
        (existing("DELTA_VERSIONS_NOT_CONTIGUOUS", f"s3a://lake/{MANAGED}/t has a gap"), False),
        (Java("com.fasterxml.jackson.core.JsonParseException", f"Unrecognized token '{MANAGED}'"), False),
    ],
)
def test_a_log_that_a_catalog_manages_is_told_from_a_damaged_one(
    java: Java, monkeypatch: pytest.MonkeyPatch, *, is_managed: bool
) -> None:
    """By Delta's own exception, whatever a path or the log says: advice to write without the guard is for no damage."""

    def of(*_: object) -> None:
        raise JavaError(java)

    one = session()
    monkeypatch.setattr("py4j.protocol.Py4JJavaError", JavaError)
    monkeypatch.setattr(one, "java_class", lambda _: SimpleNamespace(of=of))
    with pytest.raises(UnsupportedError if is_managed else JavaError):
        one.state()


def test_a_skipped_block_is_opened_as_the_first_attempt_on_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the gate expects no table, and Delta sees the lowest transaction version."""
    one = session()
    opened: list[object] = []
    monkeypatch.setattr(one, "_open", lambda *arguments: opened.extend(arguments))
    one.skip(write_key="sw-0123456789abcdef", nonce="nonce")
    assert opened[:2] == ["sw-0123456789abcdef", 1]
    assert opened[2] == {
        "claimedAt": -1,
        "latestStartMs": 0,
        "note": "",
        "journal": "",
        "nonce": "nonce",
        "filePrefix": "sw-0123456789abcdef-0-nonce-",
        "undoable": False,
        "skipped": True,
    }


@pytest.mark.parametrize(
    ("path", "skipped"),
    [
        ("s3a://lake/t", True),
        ("s3://lake/t/", True),
        ("s3a://lake/other", False),
        ("s3a://lake/t_rejected", False),
        ("s3a://lake/t/inner", False),
        ("s3a://lake/t.old", False),
        ("hdfs:///tenants/ s3a://lake/t ", False),
    ],
)
@pytest.mark.parametrize(
    ("condition", "parameter"),
    [("DELTA_PATH_EXISTS", "path"), ("DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION", "tableLocation")],
)
def test_a_table_that_is_there_is_known_by_its_path(
    path: str, condition: str, parameter: str, *, skipped: bool
) -> None:
    """Delta does not skip a statement that creates the table; the script must get an error about another table."""
    error = existing(condition, "s3a://lake/t exists already", **{parameter: path})
    assert session().was_skipped(converted(error)) is skipped


@pytest.mark.parametrize(
    ("java", "skipped"),
    [
        (Java("org.apache.spark.SparkException", "failed", refused("shut", f"no commit: {SKIPPED}")), True),
        (refused("shut", "no commit: success() was called"), False),
        (existing("DELTA_PATH_EXISTS", "it is there", path="s3a://lake/t"), True),
        (existing("TABLE_OR_VIEW_ALREADY_EXISTS", "s3a://lake/t", relationName="`db`.`://lake/t`"), False),
        (existing("UNRESOLVED_COLUMN.WITH_SUGGESTION", "DELTA_PATH_EXISTS in s3a://lake/t"), False),
        (Java("org.apache.spark.SparkException", f"Cannot cast 'SafeWriter [x]: {SKIPPED}'"), False),
        (Java("org.apache.spark.SparkException", "Cannot cast '[DELTA_PATH_EXISTS] s3a://lake/t'"), False),
    ],
)
def test_an_error_in_a_skipped_block_is_about_the_skipping_or_the_script_s_own(java: Java, *, skipped: bool) -> None:
    """The gate refuses, or Delta reports that our table exists: by their own exceptions, whatever a text says."""
    assert session().was_skipped(raised(java)) is skipped


@pytest.mark.parametrize("how", ["from", "while handling", "from none"])
def test_a_skipped_statement_s_error_that_the_script_wraps_is_known(how: str) -> None:
    """Each retry of the run would fail at the committed write otherwise. An error that the script has handled is no
    reason of the next one: a check of the rows behind `CREATE TABLE`'s `except` must end the job.
    """
    statement = converted(existing("DELTA_PATH_EXISTS", "it exists already", path="s3a://lake/t"))
    for error in (wrapped(statement, how), wrapped(wrapped(statement, how), "from")):
        assert session().was_skipped(error) is (how == "from")


@pytest.mark.parametrize(
    "text", [f"bad price: SafeWriter [x]: {SKIPPED}", "bad price: [DELTA_PATH_EXISTS] s3a://lake/t"]
)
def test_a_row_in_the_script_s_own_error_does_not_end_a_skipped_block(text: str) -> None:
    """A check of the rows that fails ends the job, also if a row reads as the gate's refusal."""
    assert session().was_skipped(ValueError(text)) is False


@pytest.mark.parametrize(("location", "skipped"), [("s3a://lake/t", True), ("s3a://lake/x", False), (None, False)])
def test_a_table_that_is_there_is_known_by_its_location(location: str | None, *, skipped: bool) -> None:
    """The catalog resolves the name; an unresolved name is not our table's."""

    def sql(text: str) -> SimpleNamespace:
        assert text == "DESCRIBE DETAIL `db`.`t`"
        if location is None:
            raise RuntimeError("there is no such table")
        return SimpleNamespace(collect=lambda: [{"location": location}])

    one: Any = session()
    one.spark = SimpleNamespace(sql=sql)
    named = existing("TABLE_OR_VIEW_ALREADY_EXISTS", "it is there", relationName="`db`.`t`")
    assert one.was_skipped(converted(named)) is skipped


def test_a_block_has_begun_once_it_has_a_gate() -> None:
    """Before that no statement can have used it."""
    one: Any = session()
    assert one.has_begun is False
    one._gate = object()
    assert one.has_begun is True


@pytest.mark.parametrize(("latest_start_ms", "point"), [(None, CommitPoint.WRITE), (5, CommitPoint.SUCCESS)])
def test_a_block_opens_its_gate(
    latest_start_ms: int | None, point: CommitPoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the fields of `Block.java`, and with a group for its jobs."""
    one = session()
    opened: list[Any] = []
    groups: list[str] = []
    one._restore = []

    def gate_open(*arguments: Any) -> SimpleNamespace:
        opened.extend(arguments)
        return SimpleNamespace(close=lambda: None)

    one._gates = SimpleNamespace(open=gate_open)
    monkeypatch.setattr(one, "begin_group", groups.append)

    attempt = SimpleNamespace(version_before=3, prefix="sw-1-2-nonce-")
    document: Any = SimpleNamespace(write_key="sw-1", epoch=2, owner="nonce", attempt=attempt, commit_point=point)
    one.begin(Opening(document, TableState(3, "id", (), {}), latest_start_ms, "s3://checkpoints/note", None))

    assert json.loads(opened[1]) == {
        "table": "s3a://lake/t",
        "key": "sw-1",
        "epoch": 2,
        "claimedAt": 3,
        "latestStartMs": latest_start_ms or 0,
        "note": "s3a://checkpoints/note",
        "journal": "",
        "nonce": "nonce",
        "filePrefix": "sw-1-2-nonce-",
        "undoable": point is CommitPoint.SUCCESS,
        "skipped": False,
    }
    assert groups == ["safewriter-sw-1-2-nonce"]
    assert len(one._restore) == 1


@pytest.mark.parametrize("succeeded", [True, False])
@pytest.mark.parametrize(
    ("seen", "at_once"),
    [
        (GateState(GateStatus.LANDED, passed=True, version=4, refusal="", stray="", added_bytes=7), True),
        (GateState(GateStatus.LANDED, passed=True, version=4, refusal="", stray=""), False),
        (GateState(GateStatus.LANDED, passed=True, version=4, refusal="", stray="", tries=2, added_bytes=7), False),
        (GateState(GateStatus.LANDED, passed=True, version=4, refusal="second: …", stray="", added_bytes=7), False),
        (GateState(GateStatus.NONE, passed=False, version=-1, refusal="", stray="", tries=1), False),
        (SimpleNamespace(status="landed", tries=1), False),
    ],
)
def test_files_are_looked_for_unless_the_first_try_landed_and_each_task_succeeded(
    seen: Any, *, at_once: bool, succeeded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed task leaves a file, and so does a statement that is refused or loses its slot, and an empty append."""
    one = session()
    monkeypatch.setattr(one, "java_class", lambda _: SimpleNamespace(allTasksSucceeded=lambda *_: succeeded))
    one._group = "safewriter-1"
    assert one.may_have_left_files(seen) is not (at_once and succeeded)


def test_a_java_that_does_not_answer_may_still_carry_out_a_statement() -> None:
    """The statement may still run, so its files stay."""
    one = session()

    def gone() -> bool:
        raise ConnectionError("Java has ended")

    for answer, outlived in ((lambda: False, False), (lambda: True, True), (gone, True)):
        one._gate = SimpleNamespace(isOutlived=answer)
        assert one.is_outlived() is outlived
