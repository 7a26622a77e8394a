"""On every lock service jobs hold a lock one after the other, and each gets its share, whatever their clocks show."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from safewriter.coordination import End
from tests.support.windows import check_windows

if TYPE_CHECKING:
    from tests.support.contenders import Contender
    from tests.support.lock_arena import Arena
    from tests.support.turn_player import Event

HOUR_S = 3600.0
LONG = 100


def turns_while_all_wanted_one(events: list[Event], turns: int) -> Counter[str]:
    """Count each job's turns from when all have had one until one job has had all of its turns."""
    ends = sorted((event for event in events if event.what == "end"), key=lambda event: event.token)
    jobs = {event.job for event in ends}
    had: Counter[str] = Counter()
    got: Counter[str] = Counter()
    for event in ends:
        had[event.job] += 1
        if len(had) == len(jobs):
            got[event.job] += 1
        if had[event.job] == turns:
            break
    return got


def play(contenders: list[Contender], turns: int) -> None:
    """Start all of them at once, with `turns` turns each."""
    for contender in contenders:  # connect first, so that none starts late
        assert contender.ask("ready") == "ready"
    answers = [contender.tell(f"turns {turns}") for contender in contenders]
    assert [answer() for answer in answers] == [f"completed {turns}"] * len(contenders)


@pytest.mark.parametrize(
    ("jobs", "turns"), [(4, 20), pytest.param(8, 125, marks=[pytest.mark.matrix, pytest.mark.timeout(1200)])]
)
def test_jobs_that_contend_have_their_turns_one_after_the_other(arena: Arena, jobs: int, turns: int) -> None:
    """No windows overlap, no turn is lost, each has its own token; in a long run every job gets its share."""
    arena.settle_server()
    play([arena.contender(f"job-{number}", lease_s=30, poll_s=0.02) for number in range(jobs)], turns)

    events = arena.events.all()
    check_windows(events)
    ends = sorted((event for event in events if event.what == "end"), key=lambda event: event.token)
    assert len({event.token for event in ends}) == len(ends) == jobs * turns
    record = arena.record()
    assert (record.token, record.completions, record.holder, record.queue) == (ends[-1].token, jobs * turns, None, ())
    assert {past.end for past in record.history} == {End.COMPLETED}
    if turns >= LONG:  # a short run may end before a job that is delayed on a busy machine has joined
        got = turns_while_all_wanted_one(events, turns)
        assert max(got.values()) <= 2 * min(got.values()), got


def test_clocks_that_differ_by_hours_change_nothing(served: Arena) -> None:
    """With wall clocks an hour ahead and an hour behind, no job takes the lock from a live holder."""
    jobs = [served.contender(f"job-{number}", skew_s=number * HOUR_S) for number in (-1, 0, 1)]

    play(jobs, 4)

    check_windows(served.events.all())
    assert [past.end for past in served.record().history] == [End.COMPLETED] * 12


def test_a_lease_is_judged_by_no_wall_clock(served: Arena) -> None:
    """A waiter two hours ahead sees that renewals keep a lease; one two hours behind gets a dead holder's lock."""
    behind, ahead = served.contender("behind", skew_s=-HOUR_S), served.contender("ahead", skew_s=HOUR_S)
    behind.ask("lock")
    answer = ahead.tell("lock")

    served.until_beat(6)
    record = served.record()
    assert record.holder is not None
    assert record.holder.job == "behind"
    behind.kill()
    assert answer() == "locked 2"

    late = served.contender("late", skew_s=-HOUR_S)
    ahead.kill()
    assert late.ask("lock") == "locked 3"
