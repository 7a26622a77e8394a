"""A job acquires its turn at a lock: waits in the queue, keeps or loses its place, obeys the order, gives up."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from safewriter.coordination.acquiring import uptime_s
from safewriter.coordination.backend import Stored
from safewriter.coordination.configuration import Edge, OnBlocked
from safewriter.coordination.record import QUEUE_MAX, End, PastTurn, Record
from safewriter.coordination.transitions import end, grant, join, renew
from safewriter.errors import SettingError, TurnBlockedError, TurnSkippedError
from safewriter.objects.store import StoreError
from tests.unit.safewriter.coordination.bench import Clock, SlowBackend, acquirer, change, held, job, now_of


def test_a_free_lock_is_taken_with_one_look_and_one_write() -> None:
    """The lease counts from when the write was sent."""
    clock = Clock()
    backend = SlowBackend(clock, latency_s=1)
    stored, times = acquirer(backend, clock).acquire()
    assert backend.requests == ["read", "write"]
    assert (times.asked_s, times.answered_s) == (1002, 1004)
    assert stored == backend._records["lock"]
    assert stored.record.is_held_by("nonce")
    assert stored.record.token == 1


def test_a_lock_that_is_given_back_goes_to_the_waiter() -> None:
    """The waiter joins the queue once, and leaves it with its grant."""
    clock = Clock()
    backend = SlowBackend(clock)
    held(backend)
    asking = acquirer(backend, clock)

    def given_back() -> bool:
        if now_of(backend).holder is not None:
            change(backend, lambda record: end(record, End.COMPLETED, 0, record.holder.writes if record.holder else ()))
        return True

    asking.may_wait = given_back
    stored, _ = asking.acquire()
    assert stored.record.token == 2
    assert stored.record.queue == ()
    assert stored.record.tickets == 1
    assert stored.record.unsettled == ()


# -- order and queue -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "error"), [(OnBlocked.RAISE, TurnBlockedError), (OnBlocked.SKIP, TurnSkippedError)])
def test_a_job_that_the_order_blocks_raises_at_once_if_it_is_to(policy: OnBlocked, error: type[Exception]) -> None:
    """The job never joins the queue, and notes its order once."""
    clock = Clock()
    backend = SlowBackend(clock)
    for requests in (["read", "write", "read"], ["read", "read"]):
        backend.requests.clear()
        with pytest.raises(error, match=r"after 0 s: A waits for the next turn that P completes") as raised:
            acquirer(backend, clock, predecessor="P", on_blocked=policy).acquire()
        assert type(raised.value) is error
        assert backend.requests == requests
    assert (now_of(backend).queue, now_of(backend).job("A").predecessor) == ((), "P")


def test_a_job_that_never_waits_is_seen_again_each_day() -> None:
    """It notes that it asks: if the record forgot the job, it could get a turn that its order denies."""
    clock = Clock()
    backend = SlowBackend(clock)
    asking = acquirer(backend, clock, predecessor="P", on_blocked=OnBlocked.SKIP)
    with pytest.raises(TurnSkippedError):
        asking.acquire()
    change(backend, lambda record: record.with_job("A", replace(record.job("A"), seen_ms=1)))
    with pytest.raises(TurnSkippedError):
        asking.acquire()
    assert now_of(backend).job("A").seen_ms > 1


def test_a_full_queue_takes_nobody_and_bars_nobody() -> None:
    """Blocked jobs that were killed keep their places; a job without a place keeps asking, and writes nothing."""
    clock = Clock()
    backend = SlowBackend(clock)
    waiting(backend, *[job("dead", predecessor="never")] * QUEUE_MAX)
    change(backend, lambda record: grant(record, job("other"), "other", "", 0))
    with pytest.raises(TurnBlockedError, match="other holds lock"):
        acquirer(backend, clock, max_wait_s=1).acquire()
    assert "write" not in backend.requests
    assert len(now_of(backend).queue) == QUEUE_MAX
    change(backend, lambda record: end(record, End.COMPLETED, 0))
    assert acquirer(backend, clock).acquire()[0].record.is_held_by("nonce")


def test_a_ring_of_jobs_that_never_wait_is_seen() -> None:
    """The second job closes the ring, and is refused."""
    clock = Clock()
    backend = SlowBackend(clock)
    with pytest.raises(TurnBlockedError):
        acquirer(backend, clock, job="A", predecessor="B", on_blocked=OnBlocked.SKIP).acquire()
    with pytest.raises(SettingError, match=r"first\.run"):
        acquirer(backend, clock, job="B", predecessor="A", on_blocked=OnBlocked.RAISE).acquire()


def test_a_job_with_a_soft_edge_waits_also_if_it_is_to_raise() -> None:
    """Its predecessor only goes first; a predecessor that died while it waited does not block for ever."""
    clock = Clock()
    backend = SlowBackend(clock)
    waiting(backend, job("dead", poll_s=0.1))
    asking = acquirer(backend, clock, predecessor="dead", edge=Edge.SOFT, on_blocked=OnBlocked.RAISE)
    assert asking.acquire()[0].record.is_held_by("nonce")
    assert clock.now_s > 1001


def test_a_job_that_is_to_skip_skips_a_lock_that_stays_held() -> None:
    """It skips the turn after its maximum wait."""
    clock = Clock()
    backend = SlowBackend(clock)
    held(backend)
    with pytest.raises(TurnSkippedError):
        acquirer(backend, clock, on_blocked=OnBlocked.SKIP, max_wait_s=0).acquire()


def test_a_ring_that_nobody_can_start_is_refused_before_anything_is_locked() -> None:
    """The job raises `SettingError` and does not write the record."""
    clock = Clock()
    backend = SlowBackend(clock)
    backend._records["lock"] = Stored(join(Record("lock"), job("B", predecessor="A"), "b", 0), 1)
    with pytest.raises(SettingError, match=r"first\.run"):
        acquirer(backend, clock, predecessor="B").acquire()
    assert backend.requests == ["read", "read"]


def waiting(backend: SlowBackend, *configurations: object, poll_s: float = 0.5) -> None:
    record = Record("lock")
    for number, one in enumerate(configurations):
        record = join(record, one, f"w{number}", 0)  # type: ignore[arg-type]
    backend._records["lock"] = Stored(record, 1)


@pytest.mark.parametrize(("poll_s", "gives_up_after_s"), [(0.1, 1), (1, 6), (600, 60)])
def test_a_waiter_that_asks_no_more_loses_its_place(poll_s: float, gives_up_after_s: float) -> None:
    """It loses its place after six of its polls, at least a second and at most a minute."""
    clock = Clock()
    backend = SlowBackend(clock)
    waiting(backend, job("dead", poll_s=poll_s))
    acquirer(backend, clock, poll_s=0.25).acquire()
    assert 0 < clock.now_s - 1000 - gives_up_after_s <= 0.5
    assert now_of(backend).queue == ()


@pytest.mark.parametrize("more", [{"predecessor": "dead", "edge": Edge.SOFT}, {"predecessor": "dead", "lag": 1}])
def test_a_dead_waiter_loses_its_place_also_to_a_job_that_the_order_blocks(more: dict[str, Any]) -> None:
    """A soft predecessor that died while it waited would block the job for ever."""
    clock = Clock()
    backend = SlowBackend(clock)
    waiting(backend, job("dead", poll_s=0.1))
    asking = acquirer(backend, clock, max_wait_s=5, **more)
    if "edge" in more:
        assert asking.acquire()[0].record.is_held_by("nonce")
    else:
        with pytest.raises(TurnBlockedError):
            asking.acquire()
    assert now_of(backend).queue == ()


def test_a_waiter_that_others_go_before_keeps_its_place() -> None:
    """While another job holds the lock, there is no evidence that the first waiter has stopped asking."""
    clock = Clock()
    backend = SlowBackend(clock)
    waiting(backend, job("first", poll_s=0.1))
    asking = acquirer(backend, clock, "late", max_wait_s=0.5)
    asking._try()
    clock.now_s += 0.5
    asking._try()
    assert [waiter.nonce for waiter in now_of(backend).queue] == ["w0", "late"]
    change(backend, lambda record: end(grant(record, job("soft"), "s", "", 0), End.COMPLETED, 0))
    clock.now_s += 10
    asking._try()
    assert [waiter.nonce for waiter in now_of(backend).queue] == ["w0", "late"]


# -- replies that are lost -------------------------------------------------------------------------------------------


def test_a_waiter_whose_grant_had_no_answer_finds_itself_and_confirms_it() -> None:
    """Others may have counted since the grant landed, so the lease counts from a renewal, and not from the read."""
    clock = Clock()
    backend = SlowBackend(clock, latency_s=1)
    backend.fail = lambda record: "lost" if record.is_held_by("nonce") and clock.now_s < 1005 else ""
    stored, times = acquirer(backend, clock, poll_s=5).acquire()
    assert backend.requests == ["read", "write", "read", "write"]
    assert stored.record.token == 1
    assert stored.record.holder is not None
    assert stored.record.holder.beat == 1
    assert times.asked_s == clock.now_s - 2


def test_a_job_that_stops_asking_gives_back_what_it_may_have_got() -> None:
    """It gives back a grant whose reply was lost."""
    clock = Clock()
    backend = SlowBackend(clock)
    backend.fail = lambda record: "lost" if record.is_held_by("nonce") else ""
    with pytest.raises(TurnBlockedError, match="no answer"):
        acquirer(backend, clock, max_wait_s=0).acquire()
    assert now_of(backend).holder is None
    assert now_of(backend).history[-1].end is End.FAILED


def test_a_job_leaves_as_far_as_the_service_answers() -> None:
    """It retries after another process's change and after one lost answer; after a second one its place expires."""
    clock = Clock()
    backend = SlowBackend(clock)
    held(backend)
    asking = acquirer(backend, clock, max_wait_s=0)
    asking._try()
    backend.before = lambda: change(backend, renew)
    asking._leave()
    assert now_of(backend).queue == ()
    asking._try()
    silent = ["refused"]
    backend.fail = lambda _: silent.pop() if silent else ""
    asking._leave()
    assert now_of(backend).queue == ()
    asking._try()
    backend.fail = lambda _: "refused"
    asking._leave()
    assert len(now_of(backend).queue) == 1


def test_a_lost_race_is_no_error() -> None:
    """The job retries, and gets the lock after the other job's lease."""
    clock = Clock()
    backend = SlowBackend(clock)

    def another() -> None:
        held(backend, lease_s=1)

    backend.before = another
    stored, _ = acquirer(backend, clock, max_wait_s=5).acquire()
    assert stored.record.token == 2


def test_a_service_that_refuses_the_caller_is_asked_no_more() -> None:
    """Waiting would not help."""
    clock = Clock()
    backend = SlowBackend(clock)

    def deny(_: object) -> Stored:
        raise StoreError("no permission", denied=True)

    backend.read = deny  # type: ignore[method-assign, assignment]
    with pytest.raises(StoreError, match="no permission"):
        acquirer(backend, clock).acquire()
    assert clock.now_s == 1000


def test_uptime_goes_on_while_the_machine_sleeps() -> None:
    """With a clock that stops during sleep, a holder would trust a lease that has ended."""
    assert uptime_s() == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=60)


# -- how often a waiter asks -----------------------------------------------------------------------------------------


class Pauses(SlowBackend):
    """It notes how long each waiter pauses, and whose turn it waits for."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.pauses: list[tuple[float, str]] = []

    def wait(self, seen: Stored | None, timeout_s: float, after: str = "") -> None:
        self.pauses.append((timeout_s, after))
        super().wait(seen, timeout_s, after)


@pytest.mark.parametrize(
    ("turn_s", "pauses_s"), [(0.1, (1, 1, 1)), (0.9, (1, 1.8, 3)), (60, (1, 3, 3)), (-60, (1, 1, 1))]
)
def test_a_waiter_behind_others_polls_when_their_turns_may_be_over(
    turn_s: float, pauses_s: tuple[float, float, float]
) -> None:
    """It pauses as long as the last turns took, one poll at least and three at most, whatever the clocks show."""
    ends = [PastTurn("other", token, 0, 10**9 + round(token * turn_s * 1000), End.COMPLETED) for token in range(50)]
    for number, expected_s in zip((0, 2, 8), pauses_s, strict=True):
        clock = Clock()
        backend = Pauses(clock)
        record = held(backend, Record("lock", history=tuple(ends)))
        for place in range(number):
            record = join(record, job(f"before-{place}"), f"before-{place}", 0)
        backend._records["lock"] = Stored(record, 1)
        with pytest.raises(TurnBlockedError):
            acquirer(backend, clock, poll_s=1, max_wait_s=4).acquire()
        pause_s, after = backend.pauses[0]
        assert pause_s == pytest.approx(expected_s)
        assert after == (f"before-{number - 1}" if number else "")


def test_jobs_that_ask_at_the_same_time_retry_at_different_moments() -> None:
    """A job whose change was refused pauses for less than a poll, and then has its turn."""
    clock = Clock()
    backend = Pauses(clock)
    backend.latency_s = 0.01

    def other_turn() -> None:
        held(backend)
        change(backend, lambda record: end(record, End.COMPLETED, 0))

    backend.before = other_turn
    acquirer(backend, clock, poll_s=1).acquire()
    assert backend.requests == ["read", "write", "read", "write"]
    ((pause_s, _),) = backend.pauses
    assert 0 < pause_s < 0.04
