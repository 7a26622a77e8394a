from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from safewriter.errors import BlockOpenError, UnguardedSessionError, UnsupportedError
from safewriter.tables.delta.gate import SKIPPED, GateState, GateStatus
from safewriter.tables.delta.session import is_append_only
from safewriter.tables.session import Opening, TableState
from tests.unit.safewriter.tables.delta.driverless import JavaError, session


@pytest.mark.parametrize(("value", "append_only"), [("true", True), ("false", False), (None, False)])
def test_a_table_may_be_append_only(value: str | None, append_only: object) -> None:
    """The property decides, not the feature."""
    properties = {} if value is None else {"delta.appendOnly": value}

    assert is_append_only(TableState(3, "id", ("appendOnly",), properties)) is append_only


@pytest.mark.parametrize(
    ("features", "properties", "obstacle"),
    [
        (("deletionVectors",), {}, None),
        (("zebra", "aardvark", "deletionVectors"), {}, "it uses aardvark, zebra"),
        (("zebra",), {"delta.appendOnly": "true"}, "it is append-only"),
    ],
)
def test_a_table_with_what_no_undo_knows_is_an_obstacle(
    features: tuple[str, ...], properties: dict[str, str], obstacle: str | None
) -> None:
    """It is named, in the order of the alphabet."""
    assert session().undo_obstacle(TableState(3, "id", features, properties)) == obstacle


def test_a_driver_without_the_log_store_is_told_what_to_add(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its settings name a class that is not on the class path."""
    one = session()
    monkeypatch.setattr(one, "_check_log_stores", lambda: "spark.delta.logStore.s3a.impl")
    with pytest.raises(UnguardedSessionError, match=r"ConditionalS3LogStore is not on the driver's class path"):
        one.verify()


def test_a_session_in_which_a_block_is_open_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate knows of blocks that this process does not: those of another copy of the module, or of a clone."""
    one = session()
    monkeypatch.setattr(one, "_check_log_stores", lambda: "spark.delta.logStore.s3a.impl")
    busy: list[bool] = [True]
    one._gates = SimpleNamespace(protocol=lambda: 6, busy=lambda _: busy[0])
    with pytest.raises(BlockOpenError, match="another SafeWriter block is open on this Spark session"):
        one.verify()
    busy[0] = False
    one.verify()
    one._gates.protocol = lambda: 5
    with pytest.raises(UnguardedSessionError, match="speaks protocol 5, this SafeWriter speaks 6"):
        one.verify()


@pytest.mark.parametrize(
    "feature", ["catalogManaged", "catalogOwned-preview", "coordinatedCommits-preview", "managedCommit-dev"]
)
def test_a_table_whose_commits_a_catalog_makes_is_refused(feature: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whichever of the names that Delta has given the feature over its releases."""
    one = session()
    protocol = json.dumps({"protocol": {"readerFeatures": [feature], "writerFeatures": ["appendOnly", feature]}})
    snapshot = SimpleNamespace(
        version=lambda: 3,
        protocol=lambda: SimpleNamespace(json=lambda: protocol),
        metadata=lambda: SimpleNamespace(json=lambda: '{"metaData":{"id":"id"}}'),
    )
    asked: list[Any] = []

    def update(*arguments: Any) -> SimpleNamespace:
        asked.extend(arguments)
        return snapshot

    monkeypatch.setattr(one, "_log", lambda: SimpleNamespace(update=update))
    monkeypatch.setattr(one, "java_class", lambda _: SimpleNamespace(empty=lambda: None))
    with pytest.raises(UnsupportedError, match=feature):
        one.state()
    assert asked == [False, None, None], "a stale table will not do"


@pytest.mark.parametrize(
    ("said", "expected"), [("[CATALOG_MANAGED_TABLE] no", UnsupportedError), ("[DELTA_TABLE_NOT_FOUND]", JavaError)]
)
def test_a_log_that_a_catalog_manages_is_told_from_any_other_error(
    said: str, expected: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta's own words say so; what else it says goes on as it is."""

    def for_table(*_: object) -> None:
        raise JavaError(said)

    one = session()
    monkeypatch.setattr("py4j.protocol.Py4JJavaError", JavaError)
    monkeypatch.setattr(one, "java_class", lambda _: SimpleNamespace(forTable=for_table))
    with pytest.raises(expected):
        one._log()


def test_a_skipped_block_is_opened_as_the_first_attempt_on_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the gate is about nothing that is there, and Delta takes the transaction's version for the lowest."""
    one = session()
    opened: list[object] = []
    kept: dict[str, str] = {}
    shut: list[str] = []
    monkeypatch.setattr(one, "_open", lambda *arguments: opened.extend(arguments))
    monkeypatch.setattr(one, "_gate", SimpleNamespace(shut=shut.append))
    monkeypatch.setattr(one, "set", kept.__setitem__)
    one.skip(write_key="sw-0123456789abcdef", nonce="nonce")
    assert opened[:2] == ["sw-0123456789abcdef", 1]
    assert opened[2] == {
        "claimedAt": -1,
        "latestStartMs": 0,
        "before": "",
        "note": "",
        "journal": "",
        "nonce": "nonce",
        "filePrefix": "sw-0123456789ab-0-nonce-",
    }
    assert shut == [SKIPPED]
    assert sorted(kept.values()) == ["1", "false", "sw-0123456789abcdef"]


@pytest.mark.parametrize(
    ("text", "skipped"),
    [
        (f"java.io.IOException: SafeWriter [shut]: {SKIPPED}", True),
        ("java.io.IOException: SafeWriter [shut]: success() was called", False),
        ("[DELTA_PATH_EXISTS] s3a://lake/t exists already", True),
        ("[DELTA_PATH_EXISTS] s3a://lake/other exists already", False),
        ("[UNRESOLVED_COLUMN] in s3a://lake/t", False),
    ],
)
def test_an_error_in_a_skipped_block_is_about_the_skipping_or_the_script_s_own(text: str, *, skipped: bool) -> None:
    """The gate refuses, or Delta says that our table is there; anything else the script must hear."""
    assert session().was_skipped(RuntimeError(text)) is skipped


@pytest.mark.parametrize(("location", "skipped"), [("s3a://lake/t", True), ("s3a://lake/x", False), (None, False)])
def test_a_table_that_is_there_is_known_by_its_location(location: str | None, *, skipped: bool) -> None:
    """The catalog tells where a name leads; one that leads nowhere is not our table's."""

    class NamedError(RuntimeError):
        def getMessageParameters(self) -> dict[str, str]:  # noqa: N802 - PySpark's
            return {"relationName": "`db`.`t`"}

    def sql(text: str) -> SimpleNamespace:
        assert text == "DESCRIBE DETAIL `db`.`t`"
        if location is None:
            raise RuntimeError("there is no such table")
        return SimpleNamespace(collect=lambda: [{"location": location}])

    one: Any = session()
    one.spark = SimpleNamespace(sql=sql)
    assert one.was_skipped(NamedError("[TABLE_OR_VIEW_ALREADY_EXISTS]")) is skipped


def test_a_block_has_begun_once_it_has_a_gate() -> None:
    """Before that no statement can have used it."""
    one: Any = session()
    assert one.has_begun is False
    one._gate = object()
    assert one.has_begun is True


class Conf(dict[str, str]):
    """A session's settings."""

    def set(self, key: str, value: str) -> None:
        self[key] = value

    def unset(self, key: str) -> None:
        self.pop(key, None)


MARK = f"sw-{'0' * 32}"
TXN = "spark.databricks.delta.write.txn"


@pytest.mark.parametrize(
    ("found", "stays"), [(MARK, False), ("theirs", True), (f"{MARK}0", True), (None, False)], ids=str
)
@pytest.mark.parametrize("latest_start_ms", [None, 5])
def test_a_block_opens_its_gate_and_marks_its_session(
    found: str | None, latest_start_ms: int | None, *, stays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of a skipped block's session has our mark, by which Delta would skip this block; a script's own stays."""
    one = session()
    opened: list[Any] = []
    groups: list[str] = []
    before = {} if found is None else {f"{TXN}AppId": found, f"{TXN}Version": "1"}
    conf = Conf(before)
    spark: Any = SimpleNamespace(conf=conf)
    one.spark = spark
    one._restore = []

    def gate_open(*arguments: Any) -> SimpleNamespace:
        opened.extend(arguments)
        return SimpleNamespace(close=lambda: None)

    one._gates = SimpleNamespace(open=gate_open)
    monkeypatch.setattr(one, "set_static", conf.set)
    monkeypatch.setattr(one, "begin_group", groups.append)

    attempt = SimpleNamespace(version_before=3, prefix="sw-1-2-nonce-")
    document: Any = SimpleNamespace(write_key="sw-1", epoch=2, owner="nonce", attempt=attempt)
    one.begin(Opening(document, TableState(3, "id", (), {}), latest_start_ms, "s3://checkpoints/note", None))

    assert json.loads(opened[1]) == {
        "table": "s3a://lake/t",
        "key": "sw-1",
        "epoch": 2,
        "claimedAt": 3,
        "latestStartMs": latest_start_ms or 0,
        "before": "",
        "note": "s3a://checkpoints/note",
        "journal": "",
        "nonce": "nonce",
        "filePrefix": "sw-1-2-nonce-",
    }
    assert groups == ["safewriter-sw-1-2-nonce"]
    assert {key: value for key, value in conf.items() if key.startswith(TXN)} == (before if stays else {})
    assert conf["spark.databricks.delta.testOnly.dataFileNamePrefix"] == "sw-1-2-nonce-"


@pytest.mark.parametrize("succeeded", [True, False])
@pytest.mark.parametrize(
    ("seen", "at_once"),
    [
        (GateState(GateStatus.LANDED, passed=True, version=4, refusal="", stray="", tries=1), True),
        (GateState(GateStatus.LANDED, passed=True, version=4, refusal="", stray="", tries=2), False),
        (GateState(GateStatus.NONE, passed=False, version=-1, refusal="", stray="", tries=1), False),
        (SimpleNamespace(status="landed", tries=1), False),
    ],
)
def test_files_are_looked_for_unless_the_first_try_landed_and_each_task_succeeded(
    seen: Any, *, at_once: bool, succeeded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed task has left a file, and so has a statement that lost its slot."""
    one = session()
    monkeypatch.setattr(one, "all_tasks_succeeded", lambda: succeeded)
    assert one.may_have_left_files(seen) is not (at_once and succeeded)
