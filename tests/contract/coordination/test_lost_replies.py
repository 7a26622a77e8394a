"""A request that was applied but not answered: no job is locked out of its own lock, and no two have it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from safewriter.coordination import End, Turn
from safewriter.coordination.record import OpenWrite
from safewriter.coordination.transitions import join
from safewriter.errors import TurnBlockedError
from safewriter.objects.store import StoreError
from tests.support.lock_arena import LOCK
from tests.support.lost_reply import LostReply
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.lock_arena import Arena

LONG_S = 60.0
"""A lease longer than any test waits."""
OUTAGES = [0, 1, 2]
WRITE = OpenWrite("s3://writes", "key", 1)


def another_waits(arena: Arena) -> Callable[[], object]:
    """Let another job join the queue, so that the record differs from the written one."""

    def comes() -> None:
        other = arena.bystander("other")
        stored = other.backend.read(LOCK)
        assert stored is not None
        other.backend.write(join(stored.record, other.configuration, "waits", 0), stored)

    return comes


@pytest.mark.parametrize("outage", OUTAGES)
@pytest.mark.parametrize("joined", [False, True])
def test_a_grant_whose_reply_was_lost_is_found(arena: Arena, outage: int, *, joined: bool) -> None:
    """The job has one turn immediately: it neither waits for its own lease nor takes a second token."""
    arena.settle_server()
    fault = LostReply(another_waits(arena) if joined else lambda: None, outage=outage)
    coordinator = arena.coordinator("job", lease_s=LONG_S)
    arena.service.lose(fault)

    turn = coordinator.lock()

    record = arena.record()
    assert fault.has_begun
    assert record.holder is not None
    assert isinstance(turn, Turn)
    assert (turn.token, record.holder.nonce, record.history) == (record.token, turn.nonce, ())
    assert [waiter.nonce for waiter in record.queue] == ["waits"] * joined
    assert coordinator.unlock()


def test_a_grant_that_is_found_later_is_renewed_first(arena: Arena) -> None:
    """A waiter may have watched the grant since it was written; the holder counts from its own request."""
    arena.settle_server()
    coordinator = arena.coordinator("job", lease_s=LONG_S)
    arena.service.lose(LostReply(outage=2))

    coordinator.lock()

    holder = arena.record().holder
    assert holder is not None
    assert holder.beat > 0
    coordinator.unlock()


def test_a_grant_whose_job_asks_no_more_is_given_back(arena: Arena) -> None:
    """The next job has the lock long before the lease ends."""
    arena.settle_server()
    coordinator = arena.coordinator("job", lease_s=LONG_S, max_wait_s=0)
    arena.service.lose(LostReply(outage=1))
    with pytest.raises(TurnBlockedError):
        coordinator.lock()

    assert arena.number(arena.bystander("next", lease_s=LONG_S).lock().token) == 2


@pytest.mark.parametrize("outage", OUTAGES)
def test_a_release_whose_reply_was_lost_is_a_release(arena: Arena, outage: int) -> None:
    """Also if another job has taken the lock meanwhile, which waits for no lease."""
    arena.settle_server()
    coordinator, other = arena.coordinator("job", lease_s=LONG_S), arena.bystander("other", lease_s=LONG_S)
    coordinator.lock()
    arena.service.lose(LostReply(other.lock, outage=outage))

    if outage:
        with suppress(StoreError):  # unknown so far
            coordinator.unlock()
    else:
        assert coordinator.unlock()

    assert other.held is not None
    assert arena.number(other.held.token) == 2
    (past,) = arena.record().history
    assert (past.job, past.end) == ("job", End.COMPLETED)
    other.unlock()


@pytest.mark.parametrize("joined", [False, True])
def test_a_renewal_whose_reply_was_lost_is_a_renewal(arena: Arena, *, joined: bool) -> None:
    """The holder continues to renew the same grant."""
    arena.settle_server()
    coordinator = arena.coordinator("job", lease_s=2)
    turn = coordinator.lock()
    fault = LostReply(another_waits(arena) if joined else lambda: None)
    arena.service.lose(fault)

    assert until(lambda: fault.has_begun)
    holder = arena.record().holder
    assert holder is not None
    arena.until_beat(holder.beat + 2)

    turn.check()
    assert coordinator.unlock()
    assert arena.record().token == turn.token


@pytest.mark.parametrize("joined", [False, True])
def test_a_note_of_a_write_whose_reply_was_lost_is_there_once(arena: Arena, *, joined: bool) -> None:
    """The write may open its gate: the next holder finds it."""
    arena.settle_server()
    coordinator = arena.coordinator("job", lease_s=LONG_S)
    turn = coordinator.lock()
    arena.service.lose(LostReply(another_waits(arena) if joined else lambda: None))

    turn.open_write(WRITE)

    holder = arena.record().holder
    assert holder is not None
    assert holder.writes == (WRITE,)
    coordinator.unlock()


def test_each_change_of_the_holder_is_a_renewal(arena: Arena) -> None:
    """The holder counts its lease from the change, so the waiters must, too."""
    coordinator = arena.coordinator("job", lease_s=LONG_S)
    turn = coordinator.lock()
    turn.open_write(WRITE)

    holder = arena.record().holder
    assert holder is not None
    assert holder.beat == 1
    coordinator.unlock()
