"""What a block's journal and gate record about a refused statement."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from safewriter.tables.delta.session import DeltaSession

if TYPE_CHECKING:
    from tests.logstore.jvm import LogStore

TABLE: Final = "s3://lake/t"
PREFIX: Final = "sw-0123456789abcdef0123456789abcdef-1-0123456789abcdef-"


def opened(**more: object) -> dict[str, Any]:
    """Return the step that opens a block with a journal on an existing table."""
    names = {"block": "b", "thread": "main", "session": "main", "table": TABLE, "key": f"sw-{'a' * 32}", "epoch": 1}
    facts = {"claimed_at": 0, "latest": 0, "note": "s3a://c/n", "journal": "there", "nonce": "n1", "prefix": PREFIX}
    return {"do": "open", **names, **facts, "undoable": False, "skipped": False, "ran_before": [], **more}


def commit(target: int, operation: str = "WRITE", *actions: dict[str, Any], **more: object) -> dict[str, Any]:
    body = [{"commitInfo": {"operation": operation}}, *actions]
    path = f"s3a://lake/t/_delta_log/{target:020}.json"
    text = "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in body)
    step = {"do": "commit", "thread": "main", "session": "main", "executions": [], "table": TABLE, "target": target}
    return {**step, "path": path, "body": text, "plan": {}, **more}


def played(logstore: LogStore, *steps: dict[str, Any]) -> tuple[list[str], list[tuple[str, str]], str]:
    """Return each step's outcome, the journal's refusals as (nonce, code), and the code that the gate recorded."""
    *seen, end = logstore.ask("history", steps=list(steps))
    lines = [json.loads(line) for line in end["journals"].get("b", "").splitlines() if line]
    refused = [(line["nonce"], line["reason"].partition(":")[0]) for line in lines if line["event"] == "refused"]
    return [one["outcome"] for one in seen], refused, seen[-1]["blocks"]["b"]["refusal"].partition(":")[0]


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (commit(2), "second"),
        (commit(2, thread="another"), "thread"),
        (commit(2, session="another"), "session"),
    ],
)
def test_a_refused_statement_of_an_open_block_is_in_its_journal(
    logstore: LogStore, step: dict[str, Any], code: str
) -> None:
    """With nonce and reason, even after another statement has landed: the script may swallow the error."""
    outcomes, refused, known = played(logstore, opened(), commit(1), step)
    assert (outcomes[1:], refused, known) == (["done", f"refused: {code}"], [("n1", code)], code)


def test_each_refusal_is_in_the_journal_and_the_gate_knows_the_first(logstore: LogStore) -> None:
    """The first is the cause of the others."""
    steps = (opened(), commit(1), commit(2), commit(2, thread="another"))
    assert played(logstore, *steps)[1:] == ([("n1", "second"), ("n1", "thread")], "second")


def test_a_commit_that_could_not_be_taken_back_is_told_like_any_other(logstore: LogStore) -> None:
    """In a block where nothing counts without success()."""
    steps = (opened(undoable=True), commit(1, "DELETE", {"remove": {"path": "of-another"}}))
    assert played(logstore, *steps) == (["done", "refused: undo"], [("n1", "undo")], "undo")


@pytest.mark.parametrize(
    "left",
    [
        pytest.param(commit(1, "DELETE", executions=[7]), id="its execution"),
        pytest.param(commit(1, "WRITE", {"add": {"path": f"{PREFIX}part"}}, thread="another"), id="its files"),
    ],
)
def test_a_statement_that_outlives_its_block_is_in_the_journal(logstore: LogStore, left: dict[str, Any]) -> None:
    """The script may never join its thread, and the block has ended."""
    steps = (opened(), {"do": "close", "block": "b", "running": [7]}, left)
    assert played(logstore, *steps) == (["done", "done", "refused: over"], [("n1", "over")], "")


def test_of_two_blocks_that_a_statement_outlives_the_later_one_is_told(logstore: LogStore) -> None:
    """The statement ran on into the later block."""
    later = opened(block="b", nonce="n2", prefix=PREFIX.replace("cdef", "0000"))
    first = opened(block="first", thread="another", session="another")
    ends = [{"do": "close", "block": name, "running": [7]} for name in ("first", "b")]
    assert played(logstore, first, later, *ends, commit(1, "DELETE", executions=[7]))[1] == [("n2", "over")]


def test_maintenance_that_is_refused_is_not_remembered(logstore: LogStore) -> None:
    """The block's write is complete without it."""
    assert played(logstore, opened(), commit(1, "OPTIMIZE")) == (["done", "refused: operation"], [], "")


def test_a_commit_that_s3_denies_has_not_passed(logstore: LogStore) -> None:
    """No settler has to fence it; the block remembers the refusal, and may send another commit."""
    at = commit(1)["path"]
    denied = commit(1, plan={at: {"fault": "denied"}})
    *seen, _ = logstore.ask("history", steps=[opened(), denied, commit(1)])
    gates = [one["blocks"]["b"] for one in seen]
    assert [one["outcome"] for one in seen] == ["done", "refused: denied", "done"]
    assert [(one["status"], one["passed"]) for one in gates] == [("none", False), ("none", False), ("landed", True)]
    assert gates[-1]["refusal"].startswith("denied: ")


def test_a_denial_behind_a_commit_that_was_sent_leaves_that_one_sent(logstore: LogStore) -> None:
    """The gate reports that no commit passed only if S3 has denied all of them."""
    taken = commit(1, plan={commit(1)["path"]: {"first": commit(1)["body"]}})
    denied = commit(2, plan={commit(2)["path"]: {"fault": "denied"}})
    *seen, _ = logstore.ask("history", steps=[opened(), taken, denied])
    assert [one["outcome"] for one in seen[1:]] == ["taken", "refused: denied"]
    assert seen[-1]["blocks"]["b"]["passed"]


def test_a_refusal_without_a_journal_is_the_caller_s_alone(logstore: LogStore) -> None:
    """Outside a function there is no journal; a deleted one changes nothing either."""
    for journal in ("", "missing"):
        steps = (opened(journal=journal), {"do": "shut", "block": "b"}, commit(1))
        assert played(logstore, *steps) == (["done", "done", "refused: shut"], [], "shut")


def test_a_skipped_block_has_no_journal() -> None:
    """Its statements are refused because their rows are there already: no row is missing."""
    asked: list[dict[str, Any]] = []

    class Asked(Exception):  # noqa: N818 - it only ends the call
        pass

    class Gates:
        def open(self, _: object, block: str) -> None:
            asked.append(json.loads(block))
            raise Asked

    session = object.__new__(DeltaSession)
    session.table, session.jspark, session._gates = "s3a://lake/t", None, Gates()
    with pytest.raises(Asked):
        session.skip(write_key=f"sw-{'a' * 32}", nonce="n1")
    assert [(one["skipped"], one["journal"], one["undoable"]) for one in asked] == [(True, "", False)]
