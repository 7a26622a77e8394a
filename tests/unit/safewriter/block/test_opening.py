"""From a block to its claim, without Spark: which errors S3 or the clock cause, and what the journal gets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from safewriter.block.claim import Claimer
from safewriter.block.opening import claim, open_gate, open_skipping, record_in_turn, tell_not_entered, tell_not_made
from safewriter.coordination.record import OpenWrite
from safewriter.deadline import Deadline
from safewriter.errors import (
    TooLateError,
    TryAgainError,
    TurnLostError,
    UnknownOutcomeError,
    UnsupportedError,
    UsageError,
)
from safewriter.identity import Attempt, Run, Write, canonical_table
from safewriter.objects.store import StoreError
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import CommitPoint
from safewriter.record.journal import Entry, Journal, append
from safewriter.schedule import Schedule
from safewriter.tables.session import MicroBatch, TableState
from tests.support.memory_store import MemoryObjectStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from safewriter.block.block import Block
    from safewriter.record.journal import Event

STATE = TableState(3, "table-id", (), {})
LATE = Schedule(Deadline(1_000, 0, lambda: 999), 10)


class Session:
    """A session that shows one table."""

    catalog: dict[str, str] = {}  # noqa: RUF012 - no test changes it
    secrets: dict[str, str] = {}  # noqa: RUF012 - no test changes it

    def __init__(self, obstacle: str | None = None) -> None:
        self._obstacle = obstacle

    def state(self) -> TableState:
        return STATE

    def named_since(self, write_key: str) -> int | None:
        assert write_key.startswith("sw-")
        return None

    def undo_obstacle(self, before: TableState) -> str | None:
        assert before is STATE
        return self._obstacle


def block_of(store: MemoryObjectStore, **changes: Any) -> Block:
    write = Write(Run("run", "run-id", "request", "job"), canonical_table("s3a://lake/t"), "delta", "daily")
    checkpoints = Checkpoints(store)
    parts: dict[str, Any] = {
        "table": "s3a://lake/t",
        "write": write,
        "attempt": Attempt.draw(),
        "commit_point": CommitPoint.WRITE,
        "schedule": None,
        "checkpoints": checkpoints,
        "recovery": None,
        "session": Session(),
        "journal": None,
        "turn": None,
        "checkpoint_uri": checkpoints.uri(write.key),
        **changes,
    }
    return cast("Block", SimpleNamespace(**parts))


@pytest.fixture
def store() -> MemoryObjectStore:
    return MemoryObjectStore(bucket="checkpoints")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "journal")


@pytest.fixture
def journal(path: str) -> Iterator[Journal]:
    with Journal(path) as made:
        yield made


def told(journal: Journal) -> list[Entry]:
    """The entries of the journal, without its own first line."""
    return [entry for entry in journal.entries() if entry.event != "journal_begun"]


def test_a_claim_announces_the_write_to_the_supervisor(store: MemoryObjectStore, journal: Journal, path: str) -> None:
    """With all that a supervisor needs to name it, and its commit point."""
    block = block_of(store, journal=path, commit_point=CommitPoint.SUCCESS)
    claimed = claim(block)
    (entry,) = told(journal)
    assert (claimed.before, claimed.already_committed) == (STATE, False)
    assert entry.event == "write_opened"
    assert entry.fields == {
        "writeKey": block.write.key,
        "nonce": block.attempt.nonce,
        "table": "s3://lake/t",
        "format": "delta",
        "step": "daily",
        "commitPoint": "success",
        "checkpoint": block.checkpoint_uri,
    }


def test_a_store_that_ignores_conditions_gets_no_claim() -> None:
    """The marker that was its witness goes again, and there is no document."""

    class Ignoring(MemoryObjectStore):
        def check_conditions(self, key: str, body: bytes) -> None:
            found = self.get(key)
            assert found is not None
            assert found.body == body
            raise UnsupportedError("nothing was written: it ignores them")

    store = Ignoring()
    with pytest.raises(UnsupportedError, match="nothing was written"):
        claim(block_of(store))
    assert list(store.list("")) == []


@pytest.mark.parametrize("journalled", [False, True])
def test_what_comes_too_late_is_told_to_the_supervisor(
    store: MemoryObjectStore, journal: Journal, path: str, *, journalled: bool
) -> None:
    """An exception may lose its type on its way through a stream; without a supervisor there is no journal."""
    block = block_of(store, journal=path if journalled else None, schedule=LATE)
    with pytest.raises(TooLateError):
        claim(block)
    nonce = block.attempt.nonce
    expected = [("write_opened", nonce), ("too_late", nonce)] if journalled else []
    assert [(entry.event, entry.fields.get("nonce")) for entry in told(journal)] == expected


@pytest.mark.parametrize("journalled", [False, True])
def test_a_block_that_is_not_entered_is_told_to_the_supervisor(
    store: MemoryObjectStore, journal: Journal, path: str, *, journalled: bool
) -> None:
    """A script may swallow the error, and a thread may not pass it on."""
    block = block_of(store, journal=path if journalled else None)
    tell_not_entered(block, TooLateError("too late"))
    (entry,) = told(journal) if journalled else [None]
    if entry is not None:
        named = {name: entry.fields[name] for name in ("writeKey", "nonce", "type", "reason")}
        assert entry.event == "not_entered"
        assert named == {
            "writeKey": block.write.key,
            "nonce": block.attempt.nonce,
            "type": "TooLateError",
            "reason": "too late",
        }


def test_a_guard_that_could_not_be_made_is_told_by_its_table(
    journal: Journal, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no write yet that could be named. A message may be longer than a line of the journal."""
    tell_not_made("s3a://lake/t", UsageError("nobody is told without a journal"))
    monkeypatch.setenv("SOAL_JOURNAL", path)
    tell_not_made("s3a://lake/t", UsageError("x" * 100_000))
    (entry,) = told(journal)
    assert entry.event == "not_made"
    assert entry.fields == {"table": "s3a://lake/t", "type": "UsageError", "reason": "x" * 4000 + "…"}


def test_a_journal_that_is_gone_hides_no_error(store: MemoryObjectStore, tmp_path: Path) -> None:
    """The script still gets its own error."""
    tell_not_entered(block_of(store, journal=str(tmp_path / "none" / "journal")), TooLateError("too late"))


def test_a_skipped_write_is_told_to_the_supervisor(store: MemoryObjectStore, journal: Journal, path: str) -> None:
    """If its document is lost, nothing else shows that the table holds the write."""
    skipped: list[str] = []
    session = Session()
    session.skip = lambda *, write_key, nonce: skipped.append(f"{write_key} {nonce}")  # type: ignore[attr-defined]
    block = block_of(store, journal=path, session=session, batch=None)
    open_skipping(block)
    (entry,) = told(journal)
    assert (entry.event, entry.fields) == ("write_skipped", {"nonce": block.attempt.nonce})
    assert skipped == [f"{block.write.key} {block.attempt.nonce}"]


def test_a_write_that_nobody_can_decide_keeps_its_marker(
    store: MemoryObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The marker leads an operator to the write, who sets its verdict by hand."""

    def undecided(*_: object) -> None:
        raise UnknownOutcomeError("the table holds it")

    monkeypatch.setattr(Claimer, "claim", undecided)
    with pytest.raises(UnknownOutcomeError):
        claim(block_of(store))
    assert [one.key.split("/")[0] for one in store.list("")] == ["open"]


@pytest.mark.usefixtures("journal")
def test_a_journal_that_is_gone_by_then_is_no_other_error(
    store: MemoryObjectStore, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full; the script must still get the error that it is too late."""

    def full(where: str, event: Event, **fields: Any) -> None:
        if event == "too_late":
            raise OSError("no space left on device")
        append(where, event, **fields)

    monkeypatch.setattr("safewriter.record.journal.append", full)
    with pytest.raises(TooLateError):
        claim(block_of(store, journal=path, schedule=LATE))


def test_another_refusal_is_not_told_as_too_late(store: MemoryObjectStore, journal: Journal, path: str) -> None:
    """Nor does it leave a marker: nothing of the attempt can still arrive."""
    block = block_of(store, journal=path, session=Session("it is append-only"), commit_point=CommitPoint.SUCCESS)
    with pytest.raises(UnsupportedError, match="append-only"):
        claim(block)
    assert [entry.event for entry in told(journal)] == ["write_opened"]
    assert list(store.list("")) == []


def test_a_claim_without_an_answer_leaves_its_marker(store: MemoryObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The document may have been written, and only the marker leads a settler to it."""
    create = store.create

    def lost(key: str, body: bytes, *, tag: str = "") -> str:
        create(key, body, tag=tag)
        raise StoreError("SlowDown")

    monkeypatch.setattr(store, "create", lost)
    block = block_of(store)
    with pytest.raises(TryAgainError):
        claim(block)
    assert [marked.nonce for marked in block.checkpoints.markers_of(block.write.key)] == [block.attempt.nonce]


@pytest.mark.parametrize(("denied", "expected"), [(True, UsageError), (False, TryAgainError)])
def test_an_s3_that_refuses_is_told_from_one_that_does_not_answer(
    store: MemoryObjectStore, monkeypatch: pytest.MonkeyPatch, *, denied: bool, expected: type[Exception]
) -> None:
    """The owner must change the first; the next try may cure the second."""

    def refuse(*_: Any, **__: Any) -> None:
        raise StoreError("PUT markers/x: no", denied=denied)

    monkeypatch.setattr(store, "put", refuse)
    with pytest.raises(expected) as raised:
        claim(block_of(store))
    assert str(raised.value) == "nothing was written: PUT markers/x: no"


# -- in a turn ---------------------------------------------------------------------------------------------------------


class Turn:
    """A coordinator's turn that records its calls."""

    def __init__(self, *, error: Exception | None = None) -> None:
        self._error = error
        self.asked: list[object] = []

    def check(self) -> None:
        self.asked.append("check")
        if self._error is not None:
            raise self._error

    def open_write(self, write: OpenWrite) -> None:
        self.asked.append(write)
        if self._error is not None:
            raise self._error


def claimed_in(store: MemoryObjectStore, turn: Turn | None) -> tuple[Block, Any]:
    block = block_of(store, turn=turn)
    document = SimpleNamespace(write_key=block.write.key, epoch=3)
    return block, SimpleNamespace(checkpoint=SimpleNamespace(document=document))


def test_a_turn_that_is_lost_claims_nothing(store: MemoryObjectStore) -> None:
    """Neither marker nor document is put."""
    with pytest.raises(TurnLostError):
        claim(block_of(store, turn=Turn(error=TurnLostError("lost"))))
    assert list(store.list("")) == []


def test_a_claimed_write_is_noted_in_its_turn(store: MemoryObjectStore) -> None:
    """With all that another process needs to settle it."""
    turn = Turn()
    block, claimed = claimed_in(store, turn)
    record_in_turn(block, claimed)
    assert turn.asked == [OpenWrite("s3://checkpoints/", block.write.key, 3)]
    record_in_turn(*claimed_in(store, None))


def test_a_note_that_the_lock_refuses_ends_the_block(store: MemoryObjectStore) -> None:
    """Another job has the turn: no gate may open."""
    with pytest.raises(TurnLostError):
        record_in_turn(*claimed_in(store, Turn(error=TurnLostError("lost"))))


def test_a_note_without_an_answer_is_a_reason_to_try_again(store: MemoryObjectStore) -> None:
    """Nothing was written: the gate has not opened."""
    with pytest.raises(TryAgainError, match="nothing was written: no answer"):
        record_in_turn(*claimed_in(store, Turn(error=StoreError("no answer"))))


@pytest.mark.parametrize(("batch", "asked"), [(None, ["skip"]), (MicroBatch("query", "3", "run"), ["state", "skip"])])
def test_a_skipped_block_of_a_stream_lets_the_stream_write_its_state(
    batch: MicroBatch | None, asked: list[str]
) -> None:
    """The block's statement, which reads the batch and so computes its state, does not run."""
    done: list[str] = []
    session = SimpleNamespace(keep_state=lambda: done.append("state"), skip=lambda **_: done.append("skip"))
    open_skipping(block_of(MemoryObjectStore(), session=session, batch=batch))
    assert done == asked


def test_the_gate_knows_when_no_commit_may_start_any_more_and_where_commits_are_announced() -> None:
    """Otherwise one starts within the lead time, or the supervisor of a killed job assumes that none was sent."""
    told: list[Any] = []
    block = SimpleNamespace(
        checkpoints=Checkpoints(MemoryObjectStore()),
        session=SimpleNamespace(begin=told.append),
        latest_start_ms=17,
        journal="/journal",
    )
    document = SimpleNamespace(write_key="sw-1", epoch=3)
    open_gate(
        cast("Any", block), cast("Any", SimpleNamespace(checkpoint=SimpleNamespace(document=document), before=None))
    )
    (gate,) = told
    assert (gate.latest_start_ms, gate.journal) == (17, "/journal")
