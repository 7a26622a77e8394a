"""When a waiter takes the lock over from a holder that has stopped renewing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safewriter.coordination.backend import Stored
from safewriter.coordination.configuration import Edge
from safewriter.coordination.record import End, Record
from safewriter.coordination.transitions import end, grant, join, renew
from safewriter.errors import TurnBlockedError
from tests.unit.safewriter.coordination.bench import WRITE, Clock, SlowBackend, acquirer, change, held, job, now_of


def test_a_holder_that_renews_keeps_its_lock() -> None:
    """It keeps the lock however long others wait."""
    clock = Clock()
    backend = SlowBackend(clock)
    held(backend)
    asking = acquirer(backend, clock, max_wait_s=100)

    def renewed() -> bool:
        change(backend, renew)
        return True

    asking.may_wait = renewed
    with pytest.raises(TurnBlockedError, match=r"^A has no turn on lock after 100 s: other holds lock\. Nothing was"):
        asking.acquire()
    assert now_of(backend).queue == ()


def test_a_lock_is_taken_over_after_a_whole_lease_by_the_waiter_s_clock() -> None:
    """It counts from the first answer that showed the grant to the last request; the writes become unsettled."""
    clock = Clock()
    backend = SlowBackend(clock, latency_s=1)
    held(backend, lease_s=10)
    stored, times = acquirer(backend, clock, poll_s=1).acquire()
    # The first answer is at 1002, the last request after 1012: at 1013, with polls of 1 s and requests of 2 s.
    assert times.asked_s - 1002 - 2 > 10
    assert times.asked_s - 1002 - 2 <= 10 + 3
    assert stored.record.unsettled == (WRITE,)
    assert stored.record.history[-1].end is End.EXPIRED
    assert stored.record.token == 2


def test_a_lease_has_not_ended_at_its_last_moment() -> None:
    """Two clocks never run exactly alike."""
    clock = Clock()
    backend = SlowBackend(clock)
    held(backend, lease_s=10)
    acquirer(backend, clock, poll_s=5).acquire()
    assert clock.now_s == 1015


def test_another_grant_begins_the_lease_anew() -> None:
    """The waiter has watched the first grant, and not the second one."""
    clock = Clock()
    backend = SlowBackend(clock)
    held(backend, lease_s=10)
    asking = acquirer(backend, clock, max_wait_s=15)
    passed: list[float] = []

    def another() -> bool:
        if clock.now_s > 1008 and not passed:
            passed.append(clock.now_s)
            change(backend, lambda r: renew(grant(end(r, End.FAILED, 0), job("other", lease_s=10), "another", "", 0)))
        return True

    asking.may_wait = another
    with pytest.raises(TurnBlockedError):
        asking.acquire()


def test_waiters_that_wait_for_less_than_a_lease_take_it_over_together() -> None:
    """Each adds to the record the time that it has observed; no time counts twice."""
    clock = Clock()
    backend = SlowBackend(clock)
    held(backend, lease_s=10)
    for number, silent_s in enumerate((4, 8)):
        with pytest.raises(TurnBlockedError):
            acquirer(backend, clock, f"{number}", max_wait_s=4, poll_s=1).acquire()
        holder = now_of(backend).holder
        assert holder is not None
        assert holder.silent_s == silent_s
        clock.now_s += 100  # no waiter reads the record
    before_s = clock.now_s
    assert acquirer(backend, clock, max_wait_s=4, poll_s=1).acquire()[0].record.token == 2
    assert clock.now_s - before_s == 3


def test_waiters_that_wait_at_the_same_time_count_their_time_once() -> None:
    """The second one to leave began before the first one's time was in the record."""
    clock = Clock()
    backend = SlowBackend(clock)
    held(backend, lease_s=10)
    both = [acquirer(backend, clock, f"{number}") for number in range(2)]
    for one in both:
        one._try()
    clock.now_s += 8
    for one in both:
        one._leave()
    holder = now_of(backend).holder
    assert holder is not None
    assert holder.silent_s == 8


@settings(max_examples=500, deadline=None, derandomize=True)
@given(
    steps=st.lists(st.sampled_from(["renew", "tick", "look 0", "look 1", "look 2", "leave 0", "leave 1", "leave 2"]))
)
def test_whoever_waits_and_leaves_a_lease_is_as_long_as_it_is(steps: list[str]) -> None:
    """No job takes the lock over within ten seconds of a renewal, in whatever order three jobs look and leave."""
    clock = Clock()
    backend = SlowBackend(clock)
    held(backend, lease_s=10)
    renewed_s = clock.now_s
    waiters = {number: acquirer(backend, clock, f"{number}") for number in "012"}
    for step in steps:
        verb, _, number = step.partition(" ")
        if verb == "tick":
            clock.now_s += 6
        elif verb == "renew":
            change(backend, renew)
            renewed_s = clock.now_s
        elif verb == "leave":
            waiters[number]._leave()
            waiters[number] = acquirer(backend, clock, number)
        else:
            waiters[number]._try()
            holder = now_of(backend).holder
            if holder is None or holder.job != "other":
                assert clock.now_s - renewed_s > 10
                return


@pytest.mark.parametrize("is_alive", [False, True])
def test_a_service_that_knows_whether_the_holder_lives_is_believed(*, is_alive: bool) -> None:
    """If the holder's session has ended, no lease has to end first."""
    clock = Clock()
    backend = SlowBackend(clock)
    record = held(backend, lease_s=10)
    backend._records["lock"] = Stored(record, 1, is_alive)
    asking = acquirer(backend, clock)
    clock.now_s += 100 * is_alive
    granted, _ = asking._try()
    assert (granted is None) is is_alive


def test_a_waiter_that_may_not_run_notes_a_dead_holder_s_end() -> None:
    """Otherwise operators would see a dead holder, and the next waiter would wait for another whole lease."""
    clock = Clock()
    backend = SlowBackend(clock)
    held(backend, lease_s=10)
    with pytest.raises(TurnBlockedError, match="waits for the next turn"):
        acquirer(backend, clock, predecessor="other", max_wait_s=15, poll_s=1).acquire()
    assert now_of(backend).holder is None
    assert now_of(backend).history[-1].end is End.EXPIRED
    assert now_of(backend).unsettled == (WRITE,)


def test_a_waiter_that_is_not_next_keeps_its_place() -> None:
    """A soft predecessor that waits for a third job may be alive, although it goes before the job that asks."""
    clock = Clock()
    backend = SlowBackend(clock)
    record = join(Record("lock"), job("A", predecessor="B", edge=Edge.SOFT), "a", 0)
    record = join(join(record, job("D", poll_s=10), "d", 0), job("B", poll_s=0.1), "b", 0)
    backend._records["lock"] = Stored(record, 1)
    asking = acquirer(backend, clock, "a", job="A", predecessor="B", edge=Edge.SOFT)
    for _ in range(10):
        asking._try()
        clock.now_s += 1
    assert [waiter.nonce for waiter in now_of(backend).queue] == ["a", "d", "b"]


@pytest.mark.parametrize("wait_s", [0, 5])
def test_visitors_that_leave_do_not_delay_a_takeover(wait_s: float) -> None:
    """A waiter that stays keeps its own count, unless others have counted more."""
    clock = Clock()
    backend = SlowBackend(clock)
    held(backend, lease_s=30)
    asking = acquirer(backend, clock)
    for _ in range(31):
        asking._try()
        with pytest.raises(TurnBlockedError):
            acquirer(backend, clock, "visitor", max_wait_s=wait_s, poll_s=1).acquire()
        clock.now_s += 1
        if clock.now_s > 1031:
            break
    assert asking._try()[0] is not None


def test_a_waiter_counts_on_from_one_that_has_watched_for_longer() -> None:
    """The other one began earlier, and leaves."""
    clock = Clock()
    backend = SlowBackend(clock)
    held(backend, lease_s=30)
    first, second = acquirer(backend, clock, "first"), acquirer(backend, clock, "second")
    first._try()
    clock.now_s += 20
    second._try()
    clock.now_s += 5
    first._leave()
    second._try()
    clock.now_s += 5
    assert second._try()[0] is None
    clock.now_s += 1
    assert second._try()[0] is not None
