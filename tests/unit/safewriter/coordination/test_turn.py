"""A held turn checks its lease before each change, survives lost replies, and ends when others take the lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.coordination.backend import Connection, Stored
from safewriter.coordination.record import End, OpenWrite
from safewriter.coordination.transitions import end, grant, join, open_write
from safewriter.coordination.turn import Turn
from safewriter.errors import TurnLostError
from safewriter.objects.store import StoreError
from tests.unit.safewriter.coordination.bench import Clock, SlowBackend, job, now_of, turn_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.coordination.record import Record

ONE, TWO = OpenWrite("s3://checkpoints", "one", 1), OpenWrite("s3://checkpoints", "two", 1)


def bench(latency_s: float = 0.0) -> tuple[Clock, SlowBackend, Turn]:
    clock = Clock()
    backend = SlowBackend(clock, latency_s)
    return clock, backend, turn_of(backend, clock, lease_s=10)


def change(backend: SlowBackend, change: Callable[[Record], Record]) -> None:
    now = backend._records["lock"]
    backend._records["lock"] = Stored(change(now.record), int(str(now.version)) + 1)


def taken_over(backend: SlowBackend) -> None:
    change(backend, lambda record: grant(end(record, End.EXPIRED, 0), job("B"), "other", "", 0))


def test_a_turn_needs_a_holder() -> None:
    """The constructor refuses a free lock."""
    clock, backend, turn = bench()
    turn.release(End.COMPLETED)
    with pytest.raises(ValueError, match="lock is free"):
        Turn(backend, job(), backend._records["lock"], None, clock_s=clock)  # type: ignore[arg-type]


def test_a_turn_is_sure_for_four_fifths_of_a_lease_from_the_sending_of_the_grant() -> None:
    """A slow answer does not prolong it."""
    clock, _, turn = bench(latency_s=1)
    assert (turn.job, turn.lock, turn.token, turn.nonce) == ("A", "lock", 1, "nonce")
    assert turn.left_s == pytest.approx(8 - 2)
    turn.check()
    clock.now_s += 6
    with pytest.raises(TurnLostError, match=r"the turn of A on lock \(token 1\) has ended: its lease could not"):
        turn.check()
    assert not turn.is_lost


@pytest.mark.parametrize("change", [lambda turn: turn.open_write(ONE), lambda turn: turn.settled([ONE])])
def test_each_change_prolongs_the_lease_from_its_sending(change: Callable[[Turn], None]) -> None:
    """Waiters see the change, too."""
    clock, backend, turn = bench(latency_s=1)
    clock.now_s += 3
    asked_s = clock.now_s
    change(turn)
    assert turn.left_s == pytest.approx(asked_s + 8 - clock.now_s)
    assert (now_of(backend).holder or pytest.fail("free")).beat == 1


def test_nothing_is_settled_without_a_request() -> None:
    """An uncontended turn costs three requests."""
    _, backend, turn = bench()
    turn.settled([])
    turn.release(End.COMPLETED)
    assert backend.requests == ["read", "write", "write"]


def test_a_holder_whose_lease_has_ended_changes_nothing() -> None:
    """This holds even before another job takes the lock over; the holder may only release it."""
    clock, backend, turn = bench()
    turn.open_write(ONE)
    clock.now_s += 8
    with pytest.raises(TurnLostError):
        turn.open_write(TWO)
    assert turn.writes == (ONE,)
    assert turn.release(End.COMPLETED, [ONE])
    assert now_of(backend).completions == 1


def test_others_that_change_the_record_do_not_stop_the_holder() -> None:
    """A waiter that joins is no reason to lose a turn."""
    _, backend, turn = bench()
    change(backend, lambda record: join(record, job("B"), "b", 0))
    turn.open_write(ONE)
    assert turn.writes == (ONE,)
    assert [waiter.nonce for waiter in now_of(backend).queue] == ["b"]


def test_a_write_cannot_be_noted_once_another_job_has_the_lock() -> None:
    """The record decides, and not the holder's clock; from then on the turn is lost."""
    _, backend, turn = bench()
    turn.open_write(ONE)
    taken_over(backend)
    with pytest.raises(TurnLostError, match="another job has it"):
        turn.open_write(TWO)
    assert turn.is_lost
    assert turn.left_s == 0
    assert now_of(backend).unsettled == (ONE,)
    assert (now_of(backend).holder or pytest.fail("free")).writes == ()
    assert not turn.release(End.COMPLETED)
    assert now_of(backend).completions == 0


def test_a_record_that_is_gone_ends_the_turn() -> None:
    """No process deletes a record; a person who does so ends all turns."""
    _, backend, turn = bench()
    backend._records.clear()
    with pytest.raises(TurnLostError, match="its record is gone"):
        turn.open_write(ONE)


def test_a_turn_is_given_back() -> None:
    """Its writes without verdicts stay in the record; a second release returns False."""
    _, backend, turn = bench()
    turn.open_write(ONE)
    turn.open_write(TWO)
    assert turn.release(End.FAILED, [ONE])
    assert now_of(backend).unsettled == (TWO,)
    assert now_of(backend).history[-1].end is End.FAILED
    assert not turn.release(End.COMPLETED)
    with pytest.raises(TurnLostError, match="was given back"):
        turn.check()


def test_a_turn_that_is_given_up_keeps_all_its_writes() -> None:
    """This holds even if the service does not answer at first."""
    _, backend, turn = bench()
    turn.open_write(ONE)
    backend.fail = lambda _: "refused"
    turn.give_up()
    backend.fail = lambda _: ""
    turn.give_up()
    assert now_of(backend).unsettled == (ONE,)
    assert not now_of(backend).completions


def test_a_release_whose_reply_was_lost_counts_once() -> None:
    """The record's history shows that the holder itself ended the turn."""
    _, backend, turn = bench()
    backend.fail = lambda record: "lost" if record.holder is None else ""
    assert turn.release(End.COMPLETED)
    assert now_of(backend).completions == 1


@pytest.mark.parametrize("how", [End.EXPIRED, End.FORCED])
def test_a_turn_that_others_ended_was_not_given_back(how: End) -> None:
    """The release returns False although the history has the turn's token."""
    _, backend, turn = bench()
    change(backend, lambda record: end(record, how, 0))
    assert not turn.release(End.COMPLETED)


def test_a_note_whose_reply_was_lost_is_made_again() -> None:
    """The record has the write once."""
    _, backend, turn = bench()
    backend.fail = lambda _: "lost"
    with pytest.raises(StoreError):
        turn.open_write(ONE)
    backend.fail = lambda _: ""
    turn.open_write(ONE)
    assert turn.writes == (ONE,)


@pytest.mark.parametrize("fault", ["lost", "refused"])
@pytest.mark.parametrize("is_release", [False, True])
def test_a_change_without_an_answer_is_tried_again(fault: str, *, is_release: bool) -> None:
    """It is tried at most three times; a request that lands late then fails against a newer version."""
    _, backend, turn = bench()
    faults = iter([fault, fault])
    backend.fail = lambda _: next(faults, "")
    if is_release:
        assert turn.release(End.COMPLETED)
        assert now_of(backend).completions == 1
        return
    turn.open_write(ONE)
    assert turn.writes == (ONE,)
    backend.fail = lambda _: fault
    tried = backend.requests.count("write")
    with pytest.raises(StoreError):
        turn.open_write(TWO)
    assert backend.requests.count("write") == tried + 3


def test_the_writes_of_a_job_to_which_the_turn_is_lent_are_looked_up() -> None:
    """The handler's copy of the record is older than these writes."""
    _, backend, turn = bench()
    change(backend, lambda record: open_write(record, ONE))
    assert turn.latest_writes() == ()
    turn.is_lent = True
    assert turn.latest_writes() == (ONE,)


def test_what_earlier_holders_left_is_told() -> None:
    """`unsettled` has their writes until they are settled."""
    _, backend, first = bench()
    first.open_write(ONE)
    first.open_write(TWO)
    change(backend, lambda record: end(record, End.FORCED, 0))
    turn = turn_of(backend, Clock(), "next")
    assert turn.unsettled == (ONE, TWO)
    assert turn.writes == ()
    turn.settled([ONE])
    assert list(turn.unsettled) == [TWO]


# -- the session, and renewals ---------------------------------------------------------------------------------------


def test_a_session_that_is_lost_ends_the_turn() -> None:
    """The service may have given the lock to another job."""
    _, backend, turn = bench()
    backend.listeners[0](Connection.LOST)
    with pytest.raises(TurnLostError, match="ended the session"):
        turn.check()
    backend.listeners[0](Connection.CONNECTED)
    assert turn.is_lost


def test_a_holder_pauses_while_its_session_is_suspended() -> None:
    """It pauses until the session is back, or the lease has ended."""
    clock, backend, turn = bench()
    backend.listeners[0](Connection.SUSPENDED)
    waits: list[float] = []

    def sleep(timeout_s: float) -> None:
        waits.append(timeout_s)
        clock.now_s += 1
        if len(waits) == 3:
            backend.listeners[0](Connection.CONNECTED)

    turn._sleep = sleep
    turn.stop()  # as during a release
    turn.check()
    assert len(waits) == 3
    backend.listeners[0](Connection.SUSPENDED)
    clock.now_s += 10
    with pytest.raises(TurnLostError):
        turn.check()


def test_a_record_that_never_rests_ends_a_change() -> None:
    """The attempts are bounded, also for a release."""
    _, backend, turn = bench()
    write, tries = backend.write, []

    def raced(record: Record, after: Stored | None) -> Stored:
        tries.append(record)
        write(join(now_of(backend), job("B"), "b", 0), backend._records["lock"])
        return write(record, after)

    backend.write = raced  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="changes faster than it can be written"):
        turn.release(End.COMPLETED)
    assert len(tries) <= 50


def test_a_release_whose_reply_was_lost_tells_whether_it_counts() -> None:
    """The record shows whether a write had no verdict."""
    for decided in ((ONE,), ()):
        _, backend, turn = bench()
        turn.open_write(ONE)
        backend.fail = lambda record: "lost" if record.holder is None else ""
        assert turn.release(End.COMPLETED, decided) is bool(decided)


def test_a_forked_process_has_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """It neither acts in the turn nor releases it."""
    _, backend, turn = bench()
    monkeypatch.setattr("safewriter.coordination.turn.os.getpid", lambda: -1)
    assert turn.left_s == 0
    with pytest.raises(TurnLostError, match="it belongs to the process that took it"):
        turn.check()
    assert not turn.release(End.COMPLETED)
    assert now_of(backend).is_held_by(turn.nonce)
