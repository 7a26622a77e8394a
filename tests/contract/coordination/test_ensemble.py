"""Servers of a ZooKeeper ensemble die while a job holds the lock and others wait: exclusion and tokens hold."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from safewriter.coordination import End
from safewriter.errors import TurnLostError
from tests.support.lock_arena import Arena
from tests.support.waiting import until
from tests.support.windows import check_windows
from tests.support.zookeeper_ensemble import Ensemble, debian
from tests.support.zookeeper_service import ZooKeeperLocks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(600)]
LONG_S = 30.0
SHORT_S = 3.0
JOBS, TURNS, DEATHS = 4, 60, 6


@pytest.fixture(params=["pyspark", "debian"])
def mortal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ensemble]:
    """Three servers of one test."""
    with Ensemble(tmp_path, classpath=None if request.param == "pyspark" else debian()) as ensemble:
        yield ensemble


@pytest.fixture
def arena(mortal: Ensemble, tmp_path: Path) -> Iterator[Arena]:
    """The lock on them."""
    with closing(ZooKeeperLocks(mortal.hosts)) as service:
        arena = Arena(service, tmp_path)
        yield arena
        arena.end()


def test_a_turn_outlives_the_leader(arena: Arena, mortal: Ensemble) -> None:
    """The holder goes on with its token, also with guarded writes; those who wait go on waiting, in their order."""
    holder, second, third = (arena.contender(name, lease_s=LONG_S) for name in ("holder", "second", "third"))
    assert holder.ask("lock") == "locked 1"
    answers = []
    for waiter in (second, third):
        answers.append(waiter.tell("lock"))
        arena.until_queue(len(answers))

    mortal.leader().kill()
    mortal.leader()

    assert holder.ask("check") == "held"
    assert holder.ask("write one") == "opened"
    assert holder.ask("commit one") == "committed"
    assert [event.job for event in arena.events.of("begin")] == ["holder"]
    assert holder.ask("unlock") == "completed"
    assert answers[0]() == "locked 2"
    assert second.ask("unlock") == "completed"
    assert answers[1]() == "locked 3"
    assert third.ask("unlock") == "completed"
    check_windows(arena.events.of("begin", "end"))
    assert [past.end for past in arena.record().history] == [End.COMPLETED] * 3


def test_jobs_contend_while_one_leader_after_the_other_dies(arena: Arena, mortal: Ensemble) -> None:
    """No windows overlap, no turn is lost, each has its own token, and the tokens grow."""
    jobs = [arena.contender(f"job-{number}", lease_s=LONG_S, poll_s=0.02) for number in range(JOBS)]
    answers = [job.tell(f"turns {TURNS}") for job in jobs]
    for death in range(DEATHS):
        assert until(lambda least=death: len(arena.events.of("end")) > least * JOBS * TURNS // (DEATHS + 1))  # type: ignore[misc]
        leader = mortal.leader()
        leader.kill()
        mortal.leader()
        leader.start()

    assert [answer() for answer in answers] == [f"completed {TURNS}"] * JOBS
    events = arena.events.all()
    check_windows(events)
    ends = arena.events.of("end")
    assert len({event.token for event in ends}) == len(ends) == JOBS * TURNS
    record = arena.record()
    assert (record.completions, record.holder, record.queue) == (JOBS * TURNS, None, ())


def test_without_a_majority_the_holder_stops_itself(arena: Arena, mortal: Ensemble) -> None:
    """Before its lease is over; when the servers are back, a waiter takes over, and settles what the holder opened."""
    holder, waiter = arena.contender("holder", lease_s=SHORT_S), arena.contender("waiter", lease_s=LONG_S)
    assert holder.ask("lock") == "locked 1"
    assert holder.ask("write opened") == "opened"
    answer = waiter.tell("lock")
    arena.until_queue(1)

    for server in mortal.servers[:2]:
        server.kill()
    assert until(lambda: holder.ask("check") == "lost")
    assert [event.job for event in arena.events.of("begin")] == ["holder"]
    for server in mortal.servers[:2]:
        server.start()

    assert answer() == "locked 2"
    assert [event.what for event in arena.events.all()] == ["begin", "settle", "begin"]
    assert holder.ask("write late") == "lost"
    assert holder.ask("commit opened") == "refused"
    assert waiter.ask("unlock") == "completed"


def test_the_job_is_told_why(arena: Arena, mortal: Ensemble) -> None:
    """The error names the job, the lock, the token and the reason."""
    turn = arena.coordinator("job", lease_s=SHORT_S).lock()

    for server in mortal.servers[:2]:
        server.kill()

    reason = r"(its lease could not be renewed in time|the lock service ended the session)"
    with pytest.raises(TurnLostError, match=rf"turn of job on table \(token {turn.token}\) has ended: {reason}"):
        until(lambda: turn.check() is not None)
