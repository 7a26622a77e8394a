"""A checkpoint document makes the protocol's legal moves of status and no other: claims, attempts, deliveries."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from safewriter.record.document import (
    ATTEMPTS_MAX,
    DELIVERIES_MAX,
    LEGAL_MOVES,
    NO_CHANGE,
    OPEN,
    Checkpoint,
    CommitPoint,
    IllegalMoveError,
    Status,
)
from tests.unit.safewriter.record.samples import NONCE, attempt, document

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
    ("committed", "committed"),
    ("rolled_back", "rolled_back"),
}
PAIRS = list(itertools.product(Status, Status))


def test_the_legal_moves_are_those_of_the_protocol() -> None:
    """The data of the code and the table of the protocol are the same."""
    assert {(before.value, after.value) for before, after in LEGAL_MOVES} == MOVES


@pytest.mark.parametrize(("before", "after"), [pair for pair in PAIRS if pair in MOVES and pair[1] != "in_progress"])
def test_a_legal_move_is_made(before: Status, after: Status) -> None:
    """Each move of the table changes the status and nothing about who owns the write."""
    moved = document(before, epoch=3).moved(after, reason="why", settled_by="test")

    assert (moved.status, moved.reason, moved.attempt.settled_by) == (after, "why", "test")
    assert (moved.epoch, moved.owner, len(moved.attempts)) == (3, NONCE, 1)


@pytest.mark.parametrize(
    ("before", "after"), [pair for pair in PAIRS if pair not in MOVES or pair[1] == Status.IN_PROGRESS]
)
def test_every_other_move_is_refused(before: Status, after: Status) -> None:
    """A pair that is not in the table is a bug of ours, and so is a claim through another method."""
    with pytest.raises(IllegalMoveError, match=f"{before} -> {after}"):
        document(before).moved(after)


def test_a_move_keeps_what_it_does_not_name() -> None:
    """Reason and refusal stay until something replaces them."""
    first = document().moved(Status.COMMITTED, reason="why", undo_refused="because")

    again = first.moved(Status.COMMITTED)

    assert (again.reason, again.undo_refused) == ("why", "because")


def test_a_move_changes_the_owners_record_only() -> None:
    """Facts about the owner's attempt leave the records of earlier attempts unchanged."""
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
    assert [record.nonce for record in claimed.attempts] == [NONCE, "b"]


def test_a_write_stays_incomplete_through_every_move() -> None:
    """Only its owner can look at the rows; a clean-up or a second settler does not change that."""
    first = document().moved(Status.COMMITTED, incomplete="a statement was refused")

    again = first.moved(Status.COMMITTED).cleaned({"a"}, 1)

    assert again.incomplete == "a statement was refused"
    assert Checkpoint.from_bytes(again.to_bytes()).incomplete == "a statement was refused"


@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_a_claim_raises_the_epoch(epoch: int) -> None:
    """No epoch is used twice."""
    with pytest.raises(IllegalMoveError):
        document(Status.ROLLED_BACK, epoch=2).claimed(attempt(epoch, "b"), CommitPoint.WRITE, "delivery")


def test_attempts_are_bounded() -> None:
    """The document keeps the newest attempts and counts those that it has dropped."""
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
    """Under an open status no attempt may be marked clean."""
    before = document(status, epoch=2, owner="b", attempts=(attempt(1, "a"), attempt(2, "b", files_removed=1)))
    if status in OPEN:
        with pytest.raises(IllegalMoveError):
            before.cleaned({"a"}, 2)
        return

    after = before.cleaned({"a"}, 2)

    assert [(record.cleaned, record.files_removed) for record in after.attempts] == [(True, 0), (False, 3)]
    assert after.status == status


@pytest.mark.parametrize(("creator", "others"), [(True, True), (True, False), (False, True), (False, False)])
def test_the_creator_is_kept_whoever_is_clean(*, creator: bool, others: bool) -> None:
    """Clean or not, the empty table is its creation."""
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
def test_only_what_is_committed_is_skipped(status: Status) -> None:
    """A block that skips anything else would lose its rows."""
    with pytest.raises(IllegalMoveError, match="skipped under"):
        document(status).skipped("run")
    assert document(Status.COMMITTED, reason=NO_CHANGE).skipped("run").deliveries == ("run",)


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
