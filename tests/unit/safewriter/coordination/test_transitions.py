"""Pure changes of a lock's record: grants with growing tokens, notes of writes, releases, queue, forgotten jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.coordination.configuration import Edge
from safewriter.coordination.record import (
    HISTORY_MAX,
    JOBS_MAX,
    QUEUE_MAX,
    RUNS_MAX,
    UNSEEN_MAX_MS,
    End,
    Job,
    OpenWrite,
    PastTurn,
    Record,
    Waiter,
)
from safewriter.coordination.transitions import (
    end,
    forget_settled,
    go_before,
    goes_first,
    grant,
    has_completed,
    join,
    leave,
    noted,
    open_write,
    renew,
    with_token,
)
from safewriter.errors import SettingError
from tests.unit.safewriter.coordination.bench import job

if TYPE_CHECKING:
    from collections.abc import Callable

FREE = Record("lock")
ONE, TWO = OpenWrite("s3://checkpoints", "one", 1), OpenWrite("s3://checkpoints", "two", 1)
HELD = grant(FREE, job(), "a", "run", 5)


def test_a_grant_registers_the_turn() -> None:
    """It has the next token and is not done yet, and its waiter leaves the queue."""
    waiting = join(join(FREE, job(), "a", 0), job("B"), "b", 0)
    held = grant(waiting, job(lease_s=9), "a", "run", 5)
    assert held.holder is not None
    assert (held.holder.job, held.holder.nonce, held.holder.lease_s, held.holder.since_ms) == ("A", "a", 9, 5)
    assert held.token == held.holder.token == held.job("A").registered == 1
    assert not held.job("A").is_done
    assert [waiter.nonce for waiter in held.queue] == ["b"]


@pytest.mark.parametrize("how", list(End))
def test_tokens_only_grow(how: End) -> None:
    """This holds however a turn ends."""
    ended = end(HELD, how, 6)
    assert ended.token == 1
    assert grant(ended, job("B"), "b", "", 7).token == 2


def test_a_held_lock_is_not_granted() -> None:
    """A lock has at most one holder."""
    with pytest.raises(ValueError, match="held by A"):
        grant(HELD, job("B"), "b", "", 0)


@pytest.mark.parametrize(
    "change",
    [
        renew,
        lambda record: open_write(record, ONE),
        lambda record: end(record, End.FAILED, 0),
        lambda record: with_token(record, 2),
        lambda record: forget_settled(record, ()),
    ],
)
def test_a_free_lock_has_no_holder_who_could_change_it(change: Callable[[Record], Record]) -> None:
    """Such a call is a bug of the caller."""
    with pytest.raises(ValueError, match="lock is free"):
        change(FREE)


def test_a_backend_may_number_the_grant() -> None:
    """ZooKeeper has its own numbers; the job's registration gets the same one."""
    numbered = with_token(HELD, 70)
    assert numbered.holder is not None
    assert (numbered.token, numbered.holder.token, numbered.job("A").registered) == (70, 70, 70)


@pytest.mark.parametrize(
    "change", [renew, lambda record: open_write(record, ONE), lambda record: forget_settled(record, (ONE,))]
)
def test_each_change_of_the_holder_is_a_sign_of_life(change: Callable[[Record], Record]) -> None:
    """The holder counts its lease from each change, so waiters must see it."""
    changed = change(HELD)
    assert changed.holder is not None
    assert changed.holder.beat == 1


def test_a_write_is_noted_once() -> None:
    """Each epoch of a write is noted once."""
    again = OpenWrite(ONE.checkpoints, ONE.write_key, 2)
    noted = open_write(open_write(open_write(open_write(HELD, ONE), TWO), ONE), again)
    assert noted.holder is not None
    assert noted.holder.writes == (TWO, ONE, again)


@pytest.mark.parametrize("how", [End.EXPIRED, End.FORCED])
def test_the_writes_of_a_holder_that_lost_the_lock_stay(how: End) -> None:
    """They stay beside earlier writes that it had not settled, each once."""
    ended = end(open_write(open_write(HELD, ONE), TWO), how, 6)
    assert ended.unsettled == (ONE, TWO)
    later = end(open_write(grant(ended, job("B"), "b", "", 7), ONE), how, 8)
    assert later.unsettled == (ONE, TWO)


def test_a_release_keeps_the_writes_without_a_verdict() -> None:
    """It also keeps those of earlier holders that it has not settled."""
    held = open_write(open_write(HELD, ONE), TWO)
    assert end(held, End.FAILED, 6, (ONE,)).unsettled == (TWO,)
    assert end(held, End.COMPLETED, 6, (ONE, TWO)).unsettled == ()
    left = end(grant(end(held, End.EXPIRED, 6), job("B"), "b", "", 7), End.FAILED, 8)
    assert left.unsettled == (ONE, TWO)


def test_a_turn_that_leaves_a_write_without_a_verdict_has_not_completed() -> None:
    """Its holder may not know of a write that was noted a moment ago."""
    left = end(open_write(HELD, ONE), End.COMPLETED, 6)
    assert (left.history[-1].end, left.completions, left.unsettled) == (End.FAILED, 0, (ONE,))


def test_settled_writes_are_forgotten() -> None:
    """The others stay."""
    held = grant(end(open_write(open_write(HELD, ONE), TWO), End.EXPIRED, 6), job("B"), "b", "", 7)
    assert forget_settled(held, [ONE]).unsettled == (TWO,)


@pytest.mark.parametrize(("how", "counts"), [(one, one in (End.COMPLETED, End.NOTHING)) for one in End])
def test_only_a_turn_that_completes_counts(how: End, *, counts: bool) -> None:
    """Its completion gets the next number."""
    ended = end(HELD, how, 6)
    assert (ended.completions, ended.job("A").completed) == ((1, 1) if counts else (0, 0))
    assert ended.job("A").is_done is counts
    assert ended.holder is None


def test_turns_are_given_by_the_predecessor_and_taken_by_the_job() -> None:
    """A job that has none left may still be granted one, by the order's other rows."""
    after = job("B", predecessor="A")

    def completed(record: Record, name: str) -> Record:
        return end(grant(record, after if name == "B" else job(name), "n", "", 0), End.COMPLETED, 0)

    record, left = FREE, []
    for name in "BBABAABAB":
        record = completed(record, name)
        left.append(record.job("B").left)
    assert left == [0, 0, 1, 0, 1, 2, 1, 2, 1]
    assert record.completions == 9


def test_the_history_has_a_bound() -> None:
    """The last turns stay."""
    record = FREE
    for _ in range(HISTORY_MAX + 2):
        record = end(grant(record, job(), "n", "", 0), End.FAILED, 0)
    assert [past.token for past in record.history] == list(range(3, HISTORY_MAX + 3))


def test_waiters_queue_by_tickets() -> None:
    """A nonce that joins again gets a new ticket; joining also notes the job's order."""
    record = join(join(FREE, job(), "a", 1), job("B", predecessor="A", poll_s=0.25), "b", 2)
    record = join(record, job(), "a", 3)
    assert [(w.nonce, w.ticket, w.since_ms, w.poll_s) for w in record.queue] == [("b", 2, 2, 0.25), ("a", 3, 3, 0.5)]
    assert record.job("B").predecessor == "A"
    assert [waiter.nonce for waiter in leave(record, "b").queue] == ["a"]
    assert leave(record, "b").tickets == 3


def test_the_first_waiter_that_may_run_goes_first() -> None:
    """A waiter that the order blocks does not delay the others."""
    record = join(join(FREE, job("B", predecessor="A"), "b", 0), job(), "a", 0)
    first = goes_first(record, job("C"), "c")
    assert first is not None
    assert first.nonce == "a"
    assert goes_first(record, job(), "a") is None
    assert goes_first(FREE, job(), "a") is None


def test_a_soft_predecessor_goes_first_with_a_later_ticket() -> None:
    """It does so only if the job defers to it."""
    soft = job("B", predecessor="A", edge=Edge.SOFT)
    record = join(join(FREE, soft, "b", 0), job(), "a", 0)
    first = goes_first(record, soft, "b")
    assert first is not None
    assert first.nonce == "a"
    assert goes_first(record, job("B", predecessor="A"), "b") is None


@pytest.mark.parametrize("how", [End.COMPLETED, End.NOTHING])
def test_a_turn_that_repeats_another_changes_nothing_in_the_order(how: End) -> None:
    """This holds whether the turn completes or fails, and for any number of the backend."""
    before = end(HELD, End.COMPLETED, 6)
    for one in (how, End.FAILED):
        granted = grant(before, job(), "again", "run", 7, repeats=True)
        assert (granted.token, granted.jobs) == (2, before.jobs)
        assert with_token(granted, 70).jobs == before.jobs
        after = end(granted, one, 8)
        assert (after.jobs, after.completions) == (before.jobs, before.completions)
        assert after.history[-1].end is (End.FAILED if one is End.FAILED else End.REPEATED)


def test_a_run_has_completed_its_turn_as_long_as_its_job_remembers_it() -> None:
    """Each job remembers its last fifty runs, whatever other jobs do; a run without a name never counts."""
    done = end(HELD, End.COMPLETED, 6)
    assert has_completed(done, "A", "run")
    assert not has_completed(done, "B", "run")
    assert not has_completed(done, "A", "other")
    assert not has_completed(end(HELD, End.FAILED, 6), "A", "run")
    assert not has_completed(end(grant(FREE, job(), "a", "", 5), End.COMPLETED, 6), "A", "")
    for number in range(200):
        done = end(grant(done, job("B"), "b", f"b{number}", 7), End.COMPLETED, 8)
    assert has_completed(done, "A", "run")
    assert len(done.job("B").runs) == 50
    assert has_completed(done, "B", "b199")
    assert not has_completed(done, "B", "b149")
    again = end(grant(done, job("B"), "b", "b199", 7), End.COMPLETED, 8)
    assert again.job("B").runs == done.job("B").runs


def test_a_job_that_asks_no_more_leaves_the_record() -> None:
    """It stays for its time, and as the predecessor of a job that asks, which would otherwise wait for ever."""
    record = FREE
    for name, before in (("A", None), ("B", "A"), ("C", None), ("D", None)):
        record = noted(record, job(name, predecessor=before), 1)
    record = noted(record, job("B", predecessor="A"), 1 + UNSEEN_MAX_MS)

    assert noted(record, job("C"), 1 + UNSEEN_MAX_MS).jobs.keys() == {"A", "B", "C", "D"}
    assert noted(record, job("C"), 2 + UNSEEN_MAX_MS).jobs.keys() == {"A", "B", "C"}


def test_a_job_that_waits_or_holds_the_lock_stays_in_the_record() -> None:
    """It stays however long that lasts; a job that asks again keeps its progress."""
    done = end(grant(FREE, job("C"), "c", "", 1), End.COMPLETED, 1)
    record = join(grant(done, job("A"), "a", "", 1), job("B"), "b", 1)
    later = noted(record, job("C"), 2 + UNSEEN_MAX_MS)

    assert later.jobs.keys() == {"A", "B", "C"}
    assert later.job("C").completed == 1


def test_a_job_of_an_older_record_is_seen_now() -> None:
    """An older record does not have the time, so its jobs are not forgotten."""
    record = Record("lock", jobs={"old": Job(completed=3)})
    assert noted(record, job("A"), 2 + UNSEEN_MAX_MS).job("old").seen_ms == 2 + UNSEEN_MAX_MS


def test_a_record_has_so_many_jobs_and_no_more() -> None:
    """A known job may ask; one too many is refused, and changes nothing."""
    record = FREE
    for number in range(JOBS_MAX):
        record = noted(record, job(f"J{number}"), 1)

    assert noted(record, job("J0"), 2) == record
    with pytest.raises(SettingError, match="is one too many"):
        join(record, job("other"), "n", 2)
    with pytest.raises(SettingError, match="is one too many"):
        grant(record, job("other"), "n", "", 2)


def test_a_full_record_fits_into_an_item_of_dynamodb() -> None:
    """It fits with the longest names and keys, and leaves room for the writes of a turn."""
    name, run = "n" * 100, "r" * 64
    one = Job(predecessor=name, runs=(run,) * RUNS_MAX, completed=10**9, registered=10**9, seen_ms=10**13)
    record = Record(
        name,
        jobs={f"{number:0>100}": one for number in range(JOBS_MAX)},
        queue=tuple(Waiter(name, "f" * 16, 10**9, 10**13, 0.5) for _ in range(QUEUE_MAX)),
        history=(PastTurn(name, 10**9, 10**13, 10**13, End.COMPLETED, run),) * HISTORY_MAX,
    )
    assert len(record.encode()) < 320_000


def test_waiters_of_lower_tickets_go_before_if_the_order_lets_them() -> None:
    """Of four waiters the second is blocked, so the first and the third go before the fourth, and none before it."""
    record = grant(Record("lock"), job("holder"), "holder", "", 0)
    for name, more in (("first", {}), ("blocked", {"predecessor": "nobody"}), ("third", {}), ("fourth", {})):
        record = join(record, job(name, **more), name, 0)

    assert [waiter.nonce for waiter in go_before(record, "fourth")] == ["first", "third"]
    assert go_before(record, "first") == go_before(record, "blocked") == go_before(record, "unknown") == []
