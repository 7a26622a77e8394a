"""The settler's parser of one Delta commit: actions, rows, marks of guard commits, bounded memory, refusals."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safewriter.identity import EPOCH_MAX
from safewriter.tables.delta.commit import FENCE, HELD_MAX_BYTES, LINE_MAX_BYTES, REVERT, Commit, Signature
from tests.unit.safewriter.delta_log import File, append_actions, body_of, creation


def test_a_commit_is_sorted_by_its_actions() -> None:
    """Every kind of action is found, in any order, with blank lines between."""
    actions: list[dict[str, Any]] = [
        {"add": {"path": "a%20b.parquet", "size": 3}},
        {"commitInfo": {"operation": "WRITE", "operationMetrics": {"numOutputRows": "12"}}},
        {"remove": {"path": "gone.parquet"}},
        {"cdc": {"path": "_change_data/c.parquet"}},
        {"txn": {"appId": "x", "version": 3}},
        {"domainMetadata": {"domain": "delta.clustering"}},
        {"add": {"path": "p=1/c.parquet"}},
        *creation(),
    ]

    found = Commit.parse(7, b"\n" + body_of(actions) + b"\n\n")

    assert (found.version, found.rows, found.bytes) == (7, 12, 3)
    assert found.paths == {"a b.parquet", "gone.parquet", "_change_data/c.parquet", "p=1/c.parquet"}
    assert (found.transactions, found.domains) == ({"x": 3}, ("delta.clustering",))
    assert found.metadata is not None
    assert found.protocol == {"minReaderVersion": 1, "minWriterVersion": 2}
    assert found.signature is None


def test_a_commit_may_hold_nothing() -> None:
    """An empty body is a commit without actions."""
    found = Commit.parse(0, b"")

    assert (found.adds, found.info, found.metadata, found.rows, found.bytes) == ((), {}, None, None, 0)


@pytest.mark.parametrize("metric", [None, "", "many", "-1", 3])
def test_rows_are_a_whole_number_or_unknown(metric: object) -> None:
    """A metric that is no number is ignored."""
    found = Commit.parse(0, body_of([{"commitInfo": {"operationMetrics": {"numOutputRows": metric}}}]))

    assert found.rows == (3 if metric == 3 else None)


@pytest.mark.parametrize("body", [b"{", b'{"add":{"path":"a"}}\n{"add":', b"\xff\xfe\n"])
def test_a_torn_body_is_an_error(body: bytes) -> None:
    """A torn commit is refused."""
    with pytest.raises(ValueError, match=r".+"):
        Commit.parse(0, body)


@given(st.text(min_size=1), st.integers(1, 2**63 - 1), st.none() | st.integers(0, 2**63 - 1))
def test_a_mark_is_read_as_it_was_written(key: str, epoch: int, reverts: int | None) -> None:
    """The text that DESCRIBE HISTORY shows holds the whole signature."""
    signature = Signature(key, epoch, reverts)

    assert Signature.from_text(signature.to_text()) == signature


@pytest.mark.parametrize("text", [None, "", "hello", "{}", "[]", '{"safewriter": 1}', '{"safewriter": {"key": "x"}}'])
def test_any_other_text_is_no_mark(text: object) -> None:
    """The user's own metadata, or none at all."""
    assert Signature.from_text(text) is None


@pytest.mark.parametrize(("operation", "marked"), [(FENCE, True), (REVERT, True), ("WRITE", False)])
def test_only_the_guards_own_commits_bear_a_mark(operation: str, marked: object) -> None:
    """The text on an ordinary write, which a guarded write bears too, makes it no fence."""
    text = json.dumps({"safewriter": {"key": "sw", "epoch": 1}})
    actions = append_actions((File("a"),), operation=operation, userMetadata=text)

    assert (Commit.parse(0, body_of(actions)).signature is not None) is marked


@pytest.mark.parametrize(
    ("operation", "metrics", "rows"),
    [
        ("MERGE", {"numTargetRowsInserted": "1", "numTargetRowsUpdated": "2", "numTargetRowsDeleted": "3"}, 6),
        ("MERGE", {"numOutputRows": "100"}, None),
        ("UPDATE", {"numUpdatedRows": "4", "numCopiedRows": "100"}, 4),
        ("DELETE", {"numDeletedRows": "5"}, 5),
    ],
)
def test_rows_are_those_that_changed_and_not_those_that_were_copied(
    operation: str, metrics: dict[str, str], rows: int | None
) -> None:
    """An operation that rewrites files counts both as output."""
    info = {"commitInfo": {"operation": operation, "operationMetrics": metrics}}
    assert Commit.parse(1, body_of([info])).rows == rows


@pytest.mark.parametrize(
    ("operation", "mode", "said", "removes", "blind"),
    [
        ("WRITE", "Append", True, 0, True),
        ("WRITE", "Append", False, 0, False),
        ("WRITE", "Append", None, 0, True),
        ("WRITE", '"Append"', None, 0, True),
        ("WRITE", "Overwrite", None, 0, False),
        ("WRITE", None, None, 0, False),
        ("MERGE", "Append", None, 0, False),
        ("STREAMING UPDATE", "Append", True, 0, True),
        ("WRITE", "Append", True, 1, False),
        ("WRITE", "Append", None, 1, False),
    ],
)
def test_an_append_is_blind_if_it_says_so_or_can_be_nothing_else(
    operation: str, mode: str | None, said: object, removes: int, *, blind: bool
) -> None:
    """Its own flag counts; without one only an operation that appends and removes nothing."""
    info = {"operation": operation, "operationParameters": {"mode": mode}, "isBlindAppend": said}
    found = Commit.parse(0, body_of([{"commitInfo": info}, *([{"remove": {"path": "a"}}] * removes)]))

    assert found.is_blind_append is blind


def test_a_commit_is_read_in_blocks_wherever_they_are_cut() -> None:
    """A large one is read line by line, with the same result."""
    body = body_of([*creation(), *append_actions((File("a%20b"), File("c")), txn=("x", 3)), {"remove": {"path": "d"}}])
    whole = Commit.parse(5, body)

    for size in (1, 7, 100, len(body)):
        assert Commit.parse(5, [body[at : at + size] for at in range(0, len(body), size)]) == whole


@pytest.mark.slow
def test_an_overwrite_of_20_000_files_takes_a_fraction_of_its_size() -> None:
    """Statistics, which fill most of a log, are not held, nor are unused fields of a removed file."""
    stats = json.dumps({"minValues": {f"column_{number}": number for number in range(50)}})
    added = [File(f"part-{number:05}-{'0' * 36}").add(stats=stats) for number in range(20_000)]
    removed = [{"remove": {"path": f"part-{number:05}-{'1' * 36}", "tags": {"x": "y"}}} for number in range(20_000)]
    body = body_of([*added, *removed])
    tracemalloc.start()
    found = Commit.parse(1, body)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (len(found.adds), len(found.removes)) == (20_000, 20_000)
    assert held <= found.held_bytes <= HELD_MAX_BYTES / 4
    assert peak - len(body) < HELD_MAX_BYTES


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        b'{"commitInfo":{"x":[' + b"{}," * 1_000_000 + b"{}]}}\n",
        b'{"add":{"path":"a"}}\n' * 300_000,
        b"".join(b'{"txn":{"appId":"%d","version":1}}\n' % number for number in range(300_000)),
        b" " * (LINE_MAX_BYTES + 1),
    ],
    ids=["one large line", "many files", "many transactions", "no end of a line"],
)
def test_a_commit_that_would_fill_the_memory_is_not_read(body: bytes) -> None:
    """A writer of one table must not end the settlers of all others."""
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"bytes of memory|more than"):
        Commit.parse(1, [body])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak - 3 * len(body) < HELD_MAX_BYTES


@pytest.mark.parametrize(
    "action",
    [
        {"txn": {"appId": "x", "version": float("inf")}},
        {"txn": {"appId": 5, "version": 1}},
        {"add": {}},
        {"add": None},
        {"add": {"path": "a", "size": float("inf")}},
        {"remove": {"path": 5}},
        {"commitInfo": {"inCommitTimestamp": float("inf")}},
        {"commitInfo": []},
        {"protocol": {"writerFeatures": [1]}},
        {"domainMetadata": {}},
    ],
)
def test_what_delta_does_not_write_is_no_commit(action: dict[str, Any]) -> None:
    """A number or a path of another type: nothing is concluded from the version."""
    with pytest.raises((ValueError, KeyError)):
        Commit.parse(1, body_of([action]))


@pytest.mark.parametrize(("version", "epoch"), [(3, 3), (EPOCH_MAX, EPOCH_MAX), (EPOCH_MAX + 1, None), (2**62, None)])
def test_a_transaction_that_no_attempt_reaches_is_none_of_the_write(version: int, epoch: int | None) -> None:
    """It settles nothing, and a retry need not go beyond it."""
    found = Commit.parse(1, json.dumps({"txn": {"appId": "sw-1", "version": version}}).encode())
    assert found.epoch_of("sw-1") == epoch
    assert found.settles("sw-1", 1) is (epoch is not None)


@pytest.mark.parametrize(
    "path",
    [
        "./pre-1.parquet",
        "a//b/../pre-1.parquet",
        "s3://lake/t/pre-1.parquet",
        "/t/pre-1.parquet?a#b",
        "x/%70re-1.parquet/.",
    ],
)
def test_a_file_is_known_in_whatever_form_a_path_names_it(path: str) -> None:
    """Relative, with dots or without, or a URI."""
    found = Commit.parse(1, json.dumps({"remove": {"path": path}}).encode())
    assert "pre-1.parquet" in set(found.names)


def test_what_an_operation_counts_may_be_no_number() -> None:
    """Python also reads digits of other scripts, which are refused here."""
    assert Commit.parse(1, body_of([{"commitInfo": {"operationMetrics": {"numOutputRows": "\u00b2"}}}])).rows is None
