"""On every lock service a waiter takes over from a dead or frozen holder once its lease is over, and settles it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.coordination import End
from safewriter.coordination.acquiring import uptime_s

if TYPE_CHECKING:
    from tests.support.lock_arena import Arena

LEASE_S = 1.0
SOON_S = 20.0
"""A waiter gets the lock within this time after a lease has ended, even on a busy machine."""


def test_tokens_grow_across_release_kill_and_expiry(thorough: Arena) -> None:
    """However a turn ends, the next one has a higher token, and the record holds how each ended."""
    first, second, third = (thorough.contender(job) for job in ("first", "second", "third"))

    assert first.ask("lock") == "locked 1"
    assert first.ask("unlock") == "completed"
    assert second.ask("lock") == "locked 2"
    second.kill()
    assert third.ask("lock") == "locked 3"
    third.freeze()
    assert first.ask("lock") == "locked 4"
    third.thaw()
    assert third.ask("unlock") == "lost"
    assert first.ask("unlock") == "completed"

    past = [(turn.job, thorough.number(turn.token), turn.end) for turn in thorough.record().history]
    assert past == [
        ("first", 1, End.COMPLETED),
        ("second", 2, End.EXPIRED),
        ("third", 3, End.EXPIRED),
        ("first", 4, End.COMPLETED),
    ]


def test_a_holder_that_renews_keeps_the_lock(thorough: Arena) -> None:
    """A waiter sees several leases pass, and gets its turn only when the holder releases the lock."""
    holder, waiter = thorough.contender("holder"), thorough.contender("waiter")
    holder.ask("lock")
    answer = waiter.tell("lock")

    thorough.until_beat(7)

    assert holder.ask("check") == "held"
    assert holder.ask("unlock") == "completed"
    assert answer() == "locked 2"


def test_a_dead_holder_s_lock_is_taken_after_its_lease_and_soon(arena: Arena) -> None:
    """The lock is taken a whole lease after the last renewal, and not much later."""
    holder, waiter = arena.contender("holder", lease_s=LEASE_S), arena.contender("waiter", lease_s=30)
    holder.ask("lock")
    answer = waiter.tell("lock")
    before_s = arena.last_seen_before_a_renewal_s()
    holder.kill()
    killed_s = uptime_s()

    assert answer() == "locked 2"

    begun_s = arena.events.of("begin")[-1].at_s
    assert before_s + LEASE_S < begun_s < killed_s + LEASE_S + SOON_S


def test_a_write_of_a_dead_holder_is_settled_before_the_next_turn_begins(thorough: Arena) -> None:
    """The holder's note names it; after the settling the table refuses it, and the record any other one."""
    zombie, heir = thorough.contender("zombie"), thorough.contender("heir")
    zombie.ask("lock")
    assert zombie.ask("write opened") == "opened"
    zombie.freeze()

    assert heir.ask("lock") == "locked 2"

    assert [event.what for event in thorough.events.all()] == ["begin", "settle", "begin"]
    assert thorough.record().unsettled == ()
    assert heir.ask("write of-heir") == "opened"
    zombie.thaw()
    assert zombie.ask("commit opened") == "refused"
    assert zombie.ask("write another") == "lost"
    assert zombie.ask("check") == "lost"
    assert zombie.ask("unlock") == "lost"
    assert heir.ask("commit of-heir") == "committed"
    assert heir.ask("unlock") == "completed"
    assert [(past.job, past.end) for past in thorough.record().history] == [
        ("zombie", End.EXPIRED),
        ("heir", End.COMPLETED),
    ]


def test_a_holder_that_was_frozen_beyond_its_lease_stops_itself(thorough: Arena) -> None:
    """No other job has the lock yet when the holder wakes, but one could have: it stops."""
    holder = thorough.contender("holder")
    holder.ask("lock")
    holder.freeze()
    thorough.pass_s(2 * LEASE_S)

    holder.thaw()

    assert holder.ask("check") == "lost"
    assert holder.ask("write late") == "lost"
    assert thorough.contender("next").ask("lock") == "locked 2"


def test_waiters_that_die_or_freeze_lose_their_place(thorough: Arena) -> None:
    """The others continue after them; a job that wakes queues again, and gets its turn."""
    holder, dead, frozen, last = (thorough.contender(job, lease_s=30) for job in ("holder", "dead", "frozen", "last"))
    holder.ask("lock")
    answers = {}
    for number, waiter in enumerate((dead, frozen, last), start=1):
        answers[number] = waiter.tell("lock")
        thorough.until_queue(number)
    dead.kill()
    frozen.freeze()

    holder.ask("unlock")

    assert answers[3]() == "locked 2"
    frozen.thaw()
    last.ask("unlock")
    assert answers[2]() == "locked 3"
