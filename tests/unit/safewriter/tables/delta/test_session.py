from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError

from safewriter.errors import BlockOpenError, UnguardedSessionError, UnsupportedError
from safewriter.tables.delta.gate import SKIPPED
from safewriter.tables.delta.session import LOG_STORE, DeltaSession, is_append_only
from safewriter.tables.session import TableState

# What talks to a JVM is tested with one: tests/integration/safewriter.


class JavaError(Exception):
    """An exception of Java's, as py4j hands it on."""

    def __init__(self, said: str) -> None:
        super().__init__(said)
        self.java_exception = SimpleNamespace(getMessage=lambda: said)


class Gates:
    """The gate's class in a JVM that does not have it."""

    def protocol(self) -> int:
        raise Py4JError("io.soal.logstore.Gate does not exist in the JVM")


def session() -> DeltaSession:
    """A session without a JVM: only what needs none can be asked of it."""
    made = object.__new__(DeltaSession)
    made.table = "s3a://lake/t"
    made.jspark = None
    made._gate = None
    made._gates = Gates()
    return made


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
    one._gates = SimpleNamespace(protocol=lambda: 5, busy=lambda _: busy[0])
    with pytest.raises(BlockOpenError, match="another SafeWriter block is open on this Spark session"):
        one.verify()
    busy[0] = False
    one.verify()


@pytest.mark.parametrize("table", ["s3", "s3a", "s3n"])
@pytest.mark.parametrize("unguarded", ["s3", "s3a", "s3n"])
def test_each_scheme_that_spark_has_a_file_system_for_is_guarded(table: str, unguarded: str) -> None:
    """A catalog may know the table by another scheme than the one that the block was given."""
    one = session()
    one.table = f"{table}://lake/t"
    kept = {f"spark.delta.logStore.{scheme}.impl": LOG_STORE for scheme in ("s3", "s3a", "s3n") if scheme != unguarded}
    files = {f"fs.{scheme}.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem" for scheme in ("s3", "s3a", "s3n")}
    context = SimpleNamespace(
        conf=lambda: SimpleNamespace(get=kept.get), hadoopConfiguration=lambda: SimpleNamespace(get=files.get)
    )
    one.jspark = SimpleNamespace(sparkContext=lambda: context)
    with pytest.raises(UnguardedSessionError, match=rf"spark\.delta\.logStore\.{unguarded}\.impl is not set"):
        one._check_log_stores()


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
    monkeypatch.setattr(one, "_log", lambda: SimpleNamespace(update=lambda *_: snapshot))
    monkeypatch.setattr(one, "java_class", lambda _: SimpleNamespace(empty=lambda: None))
    with pytest.raises(UnsupportedError, match=feature):
        one.state()


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
    opened: dict[str, object] = {}
    kept: dict[str, str] = {}
    shut: list[str] = []
    monkeypatch.setattr(one, "_open", lambda **options: opened.update(options))
    monkeypatch.setattr(one, "_gate", SimpleNamespace(shut=shut.append))
    monkeypatch.setattr(one, "set", kept.__setitem__)
    one.skip(write_key="sw-0123456789abcdef", nonce="nonce")
    assert opened == {
        "write_key": "sw-0123456789abcdef",
        "epoch": 1,
        "nonce": "nonce",
        "version_before": -1,
        "file_prefix": "sw-0123456789ab-0-nonce-",
        "latest_start_ms": None,
        "before": "",
        "note": "",
        "journal": None,
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
