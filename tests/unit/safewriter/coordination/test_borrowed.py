"""A job's process uses the turn that its handler holds, notes its writes in it, and notices its loss."""

from __future__ import annotations

import json

import pytest

from safewriter.coordination import borrowed
from safewriter.coordination.backends.memory import by_name
from safewriter.coordination.borrowed import VARIABLE, borrowed_turn, lent
from safewriter.coordination.record import End, OpenWrite
from safewriter.coordination.transitions import end, grant
from safewriter.errors import SettingError, TurnLostError
from safewriter.objects.store import StoreError
from tests.unit.safewriter.coordination.bench import Clock, SlowBackend, job, now_of, turn_of

ONE = OpenWrite("s3://checkpoints", "one", 1)


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> SlowBackend:
    """The lock service with a turn that is lent to this process."""
    service = SlowBackend(Clock())
    monkeypatch.setattr(borrowed, "open_backend", lambda uri: service if uri == "memory://lent" else by_name(uri))
    turn = turn_of(service, service.clock, "lent")
    monkeypatch.setenv(VARIABLE, lent(turn, "memory://lent", "B"))
    assert turn.is_lent
    borrowed._of.cache_clear()
    return service


def taken_over(backend: SlowBackend) -> None:
    stored = backend.read("lock")
    assert stored is not None
    backend.write(grant(end(stored.record, End.EXPIRED, 0), job("B"), "other", "", 0), stored)


def test_without_the_variable_nothing_is_borrowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job without a handler has no borrowed turn."""
    monkeypatch.delenv(VARIABLE, raising=False)
    assert borrowed_turn() is None


def test_a_job_sees_the_turn_that_its_handler_holds(backend: SlowBackend) -> None:
    """Each call returns the same object, so that a loss is not forgotten."""
    turn = borrowed_turn()
    assert turn is not None
    assert (turn.lock, turn.job, turn.token, turn.nonce, turn.previous) == ("lock", "A", 1, "lent", "B")
    turn.check()
    assert now_of(backend).is_held_by("lent")
    assert borrowed_turn() is turn


def test_a_job_notes_its_writes_itself(backend: SlowBackend) -> None:
    """The note succeeds even if the handler renews the turn meanwhile."""
    turn = borrowed_turn()
    assert turn is not None
    theirs = backend._records["lock"]

    def renewed() -> None:
        backend.write(theirs.record, theirs)

    backend.before = renewed
    turn.open_write(ONE)
    assert (now_of(backend).holder or pytest.fail("free")).writes == (ONE,)


def test_a_note_fails_once_another_job_has_the_turn(backend: SlowBackend) -> None:
    """From then on the turn is lost for the block."""
    turn = borrowed_turn()
    assert turn is not None
    taken_over(backend)
    with pytest.raises(TurnLostError, match=r"the turn of A on lock \(token 1\) has ended"):
        turn.open_write(ONE)
    assert turn.is_lost
    assert now_of(backend).holder is not None
    assert ONE not in (now_of(backend).holder or pytest.fail("free")).writes


def test_a_check_finds_the_turn_lost(backend: SlowBackend) -> None:
    """The record shows that the turn is lost."""
    turn = borrowed_turn()
    assert turn is not None
    taken_over(backend)
    assert not turn.is_lost
    with pytest.raises(TurnLostError):
        turn.check()
    assert turn.is_lost


def test_a_note_is_tried_a_bounded_number_of_times(backend: SlowBackend) -> None:
    """After the last attempt it raises `StoreError`."""
    turn = borrowed_turn()
    assert turn is not None

    real = backend.read

    def again() -> None:
        backend.write(now_of(backend), backend._records["lock"])

    def read(lock: str) -> object:
        backend.before = again
        return real(lock)

    backend.read = read  # type: ignore[method-assign, assignment]
    with pytest.raises(StoreError, match="changes faster than it can be written"):
        turn.open_write(ONE)


@pytest.mark.parametrize("text", ["{", "[]", "1", json.dumps({"lock": "lock"})])
def test_a_damaged_variable_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Without its turn the job would write unfenced."""
    monkeypatch.setenv(VARIABLE, text)
    borrowed._of.cache_clear()
    with pytest.raises(SettingError, match=f"{VARIABLE}: is not the handler's"):
        borrowed_turn()


def test_a_lent_turn_is_one_at_its_own_lock_and_service(backend: SlowBackend) -> None:
    """A lock of the same name at another service is a different lock."""
    turn = borrowed_turn()
    assert turn is not None
    assert turn.is_of("lock", "memory://lent")
    assert not turn.is_of("lock", "memory://other")
    assert not turn.is_of("other", "memory://lent")
