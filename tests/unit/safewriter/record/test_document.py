from __future__ import annotations

import dataclasses
import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safewriter.errors import UnreadableCheckpointError
from safewriter.record.document import (
    ATTEMPTS_MAX,
    DELIVERIES_MAX,
    LEGAL_MOVES,
    NO_CHANGE,
    OPEN,
    AttemptRecord,
    Checkpoint,
    CommitPoint,
    IllegalMoveError,
    Status,
)

# Written out again on purpose: the table in docs/concepts/protocol.md, not the one of the code.
MOVES = {
    ("in_progress", "committed"),
    ("in_progress", "rolled_back"),
    ("in_progress", "rolling_back"),
    ("in_progress", "unknown"),
    ("rolling_back", "rolled_back"),
    ("rolling_back", "committed"),
    ("rolling_back", "unknown"),
    ("unknown", "committed"),
    ("unknown", "rolled_back"),
    ("unknown", "rolling_back"),
    ("rolled_back", "in_progress"),
    ("committed", "in_progress"),
    ("committed", "committed"),
    ("rolled_back", "rolled_back"),
}
PAIRS = list(itertools.product(Status, Status))


def attempt(epoch: int = 1, nonce: str = "a", **more: Any) -> AttemptRecord:
    fields: dict[str, Any] = {
        "epoch": epoch,
        "nonce": nonce,
        "run_id": "run-id",
        "request_id": None,
        "prefix": f"sw-{epoch}-{nonce}-",
        "deadline_ms": 10,
        "started_ms": 1,
        "version_before": 4,
    }
    return AttemptRecord(**(fields | more))


def document(status: Status = Status.IN_PROGRESS, epoch: int = 1, **more: Any) -> Checkpoint:
    fields: dict[str, Any] = {
        "run_key": "run",
        "write_key": "sw-1",
        "fingerprint": "f",
        "table": "s3://lake/t",
        "format": "delta",
        "step": None,
        "commit_point": CommitPoint.WRITE,
        "status": status,
        "epoch": epoch,
        "owner": "a",
        "attempts": (attempt(epoch),),
    }
    return Checkpoint(**(fields | more))


def test_the_legal_moves_are_those_of_the_protocol() -> None:
    """The data of the code and the table of the protocol are the same."""
    assert {(before.value, after.value) for before, after in LEGAL_MOVES} == MOVES


@pytest.mark.parametrize(("before", "after"), [pair for pair in PAIRS if pair in MOVES and pair[1] != "in_progress"])
def test_a_legal_move_is_made(before: Status, after: Status) -> None:
    """Each move of the table changes the status and nothing about who owns the write."""
    moved = document(before, epoch=3).moved(after, reason="why", settled_by="test")

    assert (moved.status, moved.reason, moved.attempt.settled_by) == (after, "why", "test")
    assert (moved.epoch, moved.owner, len(moved.attempts)) == (3, "a", 1)


@pytest.mark.parametrize(
    ("before", "after"), [pair for pair in PAIRS if pair not in MOVES or pair[1] == Status.IN_PROGRESS]
)
def test_every_other_move_is_refused(before: Status, after: Status) -> None:
    """A pair that is not in the table is a bug of ours, and so is a claim by another door."""
    with pytest.raises(IllegalMoveError, match=f"{before} -> {after}"):
        document(before).moved(after)


def test_a_move_keeps_what_it_does_not_name() -> None:
    """Reason and refusal stay until something replaces them."""
    first = document().moved(Status.COMMITTED, reason="why", undo_refused="because")

    again = first.moved(Status.COMMITTED)

    assert (again.reason, again.undo_refused) == ("why", "because")


def test_a_move_changes_the_owners_record_only() -> None:
    """What is learned of the owner's attempt leaves the earlier attempts as they were."""
    first, second = attempt(1, "a"), attempt(2, "b")

    moved = document(epoch=2, owner="b", attempts=(first, second)).moved(Status.COMMITTED, commit_version=7)

    assert moved.attempts == (first, dataclasses.replace(second, commit_version=7))


@pytest.mark.parametrize("status", Status)
def test_a_claim_takes_only_a_write_that_was_rolled_back(status: Status) -> None:
    """A claim raises the epoch by one and names the new owner; over any other status it is refused."""
    before = document(status, epoch=2, reason="why", undo_refused=None)
    if status is not Status.ROLLED_BACK:
        with pytest.raises(IllegalMoveError):
            before.claimed(attempt(3, "b"), CommitPoint.SUCCESS, "delivery")
        return

    claimed = before.claimed(attempt(3, "b"), CommitPoint.SUCCESS, "delivery")

    assert (claimed.status, claimed.epoch, claimed.owner) == (Status.IN_PROGRESS, 3, "b")
    assert (claimed.commit_point, claimed.reason) == (CommitPoint.SUCCESS, None)
    assert [record.nonce for record in claimed.attempts] == ["a", "b"]


def test_a_claim_takes_a_write_that_had_nothing_to_change() -> None:
    """It is committed and in no table; a retry may have something to write."""
    before = document(Status.COMMITTED, epoch=1, reason=NO_CHANGE)
    assert not before.is_in_table
    claimed = before.claimed(attempt(2, "b"), CommitPoint.WRITE, "delivery")
    assert (claimed.status, claimed.epoch, claimed.reason) == (Status.IN_PROGRESS, 2, None)


@pytest.mark.parametrize("epoch", [0, 1, 2, 4])
def test_a_claim_raises_the_epoch_by_exactly_one(epoch: int) -> None:
    """No epoch is used twice, none is left out."""
    with pytest.raises(IllegalMoveError):
        document(Status.ROLLED_BACK, epoch=2).claimed(attempt(epoch, "b"), CommitPoint.WRITE, "delivery")


def test_attempts_are_bounded() -> None:
    """The document keeps the newest attempts and counts those that it has forgotten."""
    found = document(Status.ROLLED_BACK)
    for epoch in range(2, ATTEMPTS_MAX + 4):
        found = dataclasses.replace(
            found.claimed(attempt(epoch, f"n{epoch}"), CommitPoint.WRITE, "delivery"), status=Status.ROLLED_BACK
        )

    assert len(found.attempts) == ATTEMPTS_MAX
    assert found.attempts_dropped == 3
    assert (found.attempts[0].epoch, found.attempts[-1].epoch) == (4, ATTEMPTS_MAX + 3)


@pytest.mark.parametrize("status", Status)
def test_a_clean_up_is_noted_under_a_terminal_verdict_only(status: Status) -> None:
    """While the outcome is open nothing may be said to be cleaned."""
    before = document(status, epoch=2, owner="b", attempts=(attempt(1, "a"), attempt(2, "b", files_removed=1)))
    if status in OPEN:
        with pytest.raises(IllegalMoveError):
            before.cleaned({"a"}, 2)
        return

    after = before.cleaned({"a"}, 2)

    assert [(record.cleaned, record.files_removed) for record in after.attempts] == [(True, 0), (False, 3)]
    assert after.status == status


texts = st.text(max_size=8)
records = st.builds(
    AttemptRecord,
    epoch=st.integers(1, 9),
    nonce=texts,
    run_id=texts,
    request_id=st.none() | texts,
    prefix=st.text(min_size=1, max_size=8),
    deadline_ms=st.none() | st.integers(0),
    started_ms=st.integers(0),
    version_before=st.integers(-1, 9),
    table_id=st.none() | texts,
    features=st.lists(texts).map(tuple),
    properties=st.dictionaries(texts, texts),
    commit_version=st.none() | st.integers(0),
    rows=st.none() | st.integers(0),
    cleaned=st.booleans(),
)
documents = st.builds(
    Checkpoint,
    run_key=texts,
    write_key=texts,
    fingerprint=texts,
    table=texts,
    format=texts,
    step=st.none() | texts,
    commit_point=st.sampled_from(CommitPoint),
    status=st.sampled_from(Status),
    epoch=st.integers(1, 9),
    owner=texts,
    attempts=st.lists(records, min_size=1, max_size=3).map(tuple),
    reason=st.none() | texts,
    undo_refused=st.none() | texts,
)


@given(documents)
def test_a_document_is_read_as_it_was_written(before: Checkpoint) -> None:
    """Nothing but the nonce of the writing changes on the way."""
    after = Checkpoint.from_bytes(before.to_bytes())

    assert dataclasses.replace(after, nonce=before.nonce) == before


def test_two_writings_of_one_document_differ() -> None:
    """Equal bytes would have equal ETags, and a lost race would look like a won one."""
    assert document().to_bytes() != document().to_bytes()


def test_an_absent_table_is_written_as_a_word() -> None:
    """The paper's fields stand at the top, for people."""
    found = json.loads(document(attempts=(attempt(version_before=-1),)).to_bytes())

    assert (found["version_before"], found["attempts"][0]["version_before"]) == ("absent", "absent")
    assert (found["schema_version"], found["status"], found["run_id"]) == (1, "in_progress", "run-id")


def test_a_field_of_a_later_minor_change_is_ignored() -> None:
    """A document with a field more, of the same version, is still read."""
    body = json.loads(document().to_bytes()) | {"colour": "blue"}
    body["attempts"][0]["colour"] = "red"

    assert Checkpoint.from_bytes(json.dumps(body).encode()).attempt.nonce == "a"


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_an_unknown_schema_version_is_refused(version: object) -> None:
    """A document of another version is not interpreted, and the message names it."""
    body = json.loads(document().to_bytes()) | {"schema_version": version}

    with pytest.raises(UnreadableCheckpointError, match=f"schema version {version}"):
        Checkpoint.from_bytes(json.dumps(body).encode())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b"\xff\xfe",
        document().to_bytes()[:-20],
        document().to_bytes().replace(b'"in_progress"', b'"in_doubt"'),
        document().to_bytes().replace(b'"write"', b'"read"'),
        document().to_bytes().replace(b'"owner"', b'"master"'),
        document().to_bytes().replace(b'"nonce": "a"', b'"once": "a"'),
        document(attempts=(attempt(prefix=""),)).to_bytes(),
        document().to_bytes().replace(b'"version_before": 4', b'"version_before": "none"'),
    ],
)
def test_a_damaged_body_is_refused(body: bytes) -> None:
    """What is no whole document is refused as such, whatever is wrong with it."""
    with pytest.raises(UnreadableCheckpointError):
        Checkpoint.from_bytes(body)


def test_a_document_without_attempts_is_refused() -> None:
    """Nobody could say what to look for in the table."""
    body = json.loads(document().to_bytes()) | {"attempts": []}

    with pytest.raises(UnreadableCheckpointError, match="no attempt"):
        Checkpoint.from_bytes(json.dumps(body).encode())


@pytest.mark.parametrize(("creator", "others"), [(True, True), (True, False), (False, True), (False, False)])
def test_the_creator_is_kept_whoever_is_clean(*, creator: bool, others: bool) -> None:
    """Clean or not, the empty table is its."""
    found = document(Status.ROLLED_BACK, attempts=(attempt(1, "a", version_before=-1, cleaned=creator),))
    for epoch in range(2, ATTEMPTS_MAX + 4):
        claimed = found.claimed(
            attempt(epoch, f"n{epoch}", version_before=3, cleaned=others), CommitPoint.WRITE, "delivery"
        )
        found = claimed.moved(Status.ROLLED_BACK, reason="failed")
    assert [one.nonce for one in found.attempts if one.may_have_created] == ["a"]


def test_an_attempt_that_never_claimed_has_created_nothing() -> None:
    """Its version says nothing of the table."""
    assert not attempt(version_before=-1, claimed=False).may_have_created


@pytest.mark.parametrize("status", [one for one in Status if one is not Status.COMMITTED])
def test_only_what_is_in_the_table_is_skipped(status: Status) -> None:
    """A block that skips anything else would lose its rows."""
    with pytest.raises(IllegalMoveError, match="skipped under"):
        document(status).skipped("run")
    with pytest.raises(IllegalMoveError, match="skipped under"):
        document(Status.COMMITTED, reason=NO_CHANGE).skipped("run")


def test_deliveries_are_kept_once_each_and_the_last_ones_longest() -> None:
    """Of claims and of skips; one that comes again is the last."""
    found = document(Status.ROLLED_BACK, deliveries=("first", "second"))
    claimed = found.claimed(attempt(2, "b"), CommitPoint.WRITE, "third")
    assert claimed.deliveries == ("first", "second", "third")

    skipped = claimed.moved(Status.COMMITTED, reason="in the table").skipped("first")
    assert skipped.deliveries == ("second", "third", "first")

    for number in range(DELIVERIES_MAX):
        skipped = skipped.skipped(str(number))
    assert skipped.deliveries == tuple(str(number) for number in range(DELIVERIES_MAX))


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("cleaned", [False, True])
def test_a_document_is_finished_when_it_is_settled_and_clean(status: Status, *, cleaned: bool) -> None:
    """Only then may it expire."""
    found = document(status, attempts=(attempt(cleaned=True), attempt(cleaned=cleaned)))
    assert found.is_finished is (cleaned and status in {Status.COMMITTED, Status.ROLLED_BACK})


def test_a_catalog_is_written_down_where_there_is_one() -> None:
    """A table that lies at a path has none."""
    found = document(attempts=(attempt(), attempt(catalog={"type": "rest"})))
    written = json.loads(found.to_bytes())

    assert ["catalog" in one for one in written["attempts"]] == [False, True]
    assert [one.catalog for one in Checkpoint.from_bytes(found.to_bytes()).attempts] == [{}, {"type": "rest"}]


@pytest.mark.parametrize("deliveries", [None, []])
def test_a_document_without_deliveries_is_read(deliveries: list[str] | None) -> None:
    """One of before they were kept."""
    written = json.loads(document().to_bytes()) | {"deliveries": deliveries}

    assert Checkpoint.from_bytes(json.dumps(written).encode()).deliveries == ()
    del written["deliveries"]
    assert Checkpoint.from_bytes(json.dumps(written).encode()).deliveries == ()
