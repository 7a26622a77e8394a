"""The gate in Java reads a Delta commit: its operation, its new files' owner, and whether an undo can revert it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.model.passing import BRING_BACK, GUARDED

if TYPE_CHECKING:
    from tests.logstore.jvm import LogStore

KNOWN: Final = "sw-[0-9]+-"
KEY: Final = "sw-0123456789abcdef0123456789abcdef"


def lines(*actions: dict[str, Any]) -> str:
    return "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)


def parsed(logstore: LogStore, *actions: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = logstore.ask("parse", body=lines(*actions), pattern=KNOWN)
    return found


def info(operation: str) -> dict[str, Any]:
    return {"commitInfo": {"operation": operation}}


def add(path: str) -> dict[str, Any]:
    return {"add": {"path": path, "size": 1}}


def remove(path: str) -> dict[str, Any]:
    return {"remove": {"path": path}}


@pytest.mark.parametrize("operation", GUARDED)
def test_an_operation_that_writes_rows_is_guarded(logstore: LogStore, operation: str) -> None:
    """By the name that Delta gives it."""
    assert parsed(logstore, info(operation))["writesRows"]


@pytest.mark.parametrize("operation", ["OPTIMIZE", "STREAMING UPDATE", "SET TBLPROPERTIES", "", *BRING_BACK])
def test_any_other_operation_is_not(logstore: LogStore, operation: str) -> None:
    """Maintenance, properties, a stream's own sink."""
    assert not parsed(logstore, info(operation))["writesRows"]


def test_a_commit_without_its_info_has_no_operation(logstore: LogStore) -> None:
    """Another writer may omit commitInfo; empty lines are ignored."""
    found = logstore.ask("parse", body="\n\n" + lines(add("a")) + "\n", pattern=KNOWN)
    assert (found["operation"], found["writesRows"]) == ("", False)


def test_a_name_tells_whose_file_it_is(logstore: LogStore) -> None:
    """The prefix counts in any folder, at the beginning of the file's name only: a folder's name is data."""
    paths = ("sw-1-a", "day=1/sw-2-b", "day=sw-/part", "part", "sw-4-/part", "day=sw-5-/part", "day=1/part-sw-6-a")
    found = parsed(logstore, info("WRITE"), *map(add, paths))
    assert found["newPrefixes"] == ["sw-1-", "sw-2-"]


def test_a_file_that_is_added_and_removed_is_no_new_one(logstore: LogStore) -> None:
    """A new deletion vector adds and removes the same file, in either order."""
    found = parsed(
        logstore, add("sw-1-a"), remove("sw-1-a"), remove("sw-2-b"), add("sw-2-b"), add("sw-3-c"), remove("d")
    )
    assert found["newPrefixes"] == ["sw-3-"]


def test_transactions_are_known_by_their_application(logstore: LogStore) -> None:
    """One commit may hold transactions of several applications; only ours identifies our write."""
    found = parsed(logstore, *({"txn": {"appId": name, "version": number}} for name, number in (("a", 1), ("b", 2))))
    assert found["transactions"] == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("kind", "belongs"), [("metaData", True), ("protocol", True), ("domainMetadata", True), ("cdc", False)]
)
def test_a_creation_is_kept_as_it_is_written(logstore: LogStore, kind: str, belongs: object) -> None:
    """A table's shape is its schema, protocol and domains."""
    action = {kind: {"of": "table"}}
    found = parsed(logstore, info("CREATE TABLE"), action, add("a"))
    assert found["creation"] == (lines(action) if belongs else "")


def txn(key: str) -> dict[str, Any]:
    return {"txn": {"appId": key, "version": 1, "lastUpdated": 0}}


def domain(name: str) -> dict[str, Any]:
    return {"domainMetadata": {"domain": name, "configuration": "{}", "removed": False}}


@pytest.mark.parametrize(
    ("actions", "obstacle"),
    [
        ([add("a")], None),
        ([], None),  # a statement that changes nothing makes an empty commit
        ([{"cdc": {"path": "_change_data/a"}}, add("a")], None),
        ([remove("a")], "it removes files"),
        ([add("a"), remove("a")], "it removes files"),  # a deletion vector
        ([{"metaData": {"id": "t"}}, add("a")], "it changes the table's schema or properties"),
        ([{"protocol": {"minReaderVersion": 1}}, add("a")], "it changes the table's schema or properties"),
        ([domain("delta.clustering"), add("a")], "it changes the table's schema or properties"),
        ([domain("delta.rowTracking"), add("a")], None),  # each commit with new rows raises it
        ([txn(KEY), add("a")], None),  # the gate's own
        ([txn("the script's"), add("a")], "it holds the script's own transaction the script's"),
        ([txn(KEY), txn(f"{KEY}0"), add("a")], f"it holds the script's own transaction {KEY}0"),
        ([remove("a"), {"metaData": {"id": "t"}}, txn("the script's")], "it removes files"),
    ],
)
def test_only_a_commit_that_only_adds_files_can_be_taken_back(
    logstore: LogStore, actions: list[dict[str, Any]], obstacle: str | None
) -> None:
    """An undo would not revert any other action; the message names the first one."""
    assert parsed(logstore, info("WRITE"), *actions)["undoObstacle"] == obstacle


@pytest.mark.parametrize(
    ("actions", "obstacle"),
    [
        (
            [{"protocol": {"minReaderVersion": 1}}, {"metaData": {"id": "t"}}, domain("delta.clustering"), add("a")],
            None,
        ),
        ([{"metaData": {"id": "t"}}, txn("the script's")], "it holds the script's own transaction the script's"),
        ([{"metaData": {"id": "t"}}, remove("a")], "it removes files"),
    ],
)
def test_a_creation_can_be_taken_back(logstore: LogStore, actions: list[dict[str, Any]], obstacle: str | None) -> None:
    """The undo leaves an empty table with its schema; the other rules are those of any commit."""
    assert parsed(logstore, info("CREATE TABLE AS SELECT"), *actions)["undoObstacleOfCreation"] == obstacle


def unmarked(logstore: LogStore, body: str) -> str:
    return str(logstore.ask("unmarked", body=body)["body"])


def test_transactions_of_blocks_are_taken_out(logstore: LogStore) -> None:
    """All of them, anywhere in the commit; the other actions keep their order."""
    body = lines(info("WRITE"), txn(KEY), txn("user's"), add("a"), txn(KEY[:-1] + "0"))
    assert unmarked(logstore, body) == lines(info("WRITE"), txn("user's"), add("a"))


@pytest.mark.parametrize("key", ["sw-1", f"{KEY}0", KEY[:-1], f"my-{KEY}", KEY.upper(), f"{KEY[:-1]}x"])
def test_a_transaction_that_only_looks_like_one_of_a_block_stays(logstore: LogStore, key: str) -> None:
    """A user's application may have such a name."""
    body = lines(info("WRITE"), txn(key))
    assert unmarked(logstore, body) == body


def test_a_transaction_is_known_by_what_it_says_and_not_by_how_it_is_spelled(logstore: LogStore) -> None:
    """JSON may have spaces and any order of fields."""
    spaced = f'{{ "txn" : {{ "version" : 1, "appId" : "{KEY}" }} }}\n'
    assert unmarked(logstore, lines(info("WRITE")) + spaced + lines(add("a"))) == lines(info("WRITE"), add("a"))


@pytest.mark.parametrize(
    "rest",
    [
        '{"add":{"path":"sw-0","partitionValues":{"txn":"appId"},"tags":{"appId":"' + KEY + '"}}}\n',
        '{"commitInfo":{"userMetadata":"{\\"txn\\":{\\"appId\\":\\"' + KEY + '\\"}}"}}\n',
        '\n{ "add" : {"path":"\u00e4 \U0001f600"} }\r\n\n',
        '{"add":{"path":"the last line has no end"}}',
    ],
)
def test_what_is_no_transaction_stays_byte_for_byte(logstore: LogStore, rest: str) -> None:
    """Spaces, empty lines and letters do not change, with or without a transaction to remove."""
    assert unmarked(logstore, rest) == rest
    assert unmarked(logstore, lines(txn(KEY)) + rest) == rest
