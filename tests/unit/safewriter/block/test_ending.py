"""How a block ends, with a Spark session that a test can hang, silence or let fail. Integration tests run the whole of
it; these tests need a broken JVM.
"""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from typing import TYPE_CHECKING

import pytest

from safewriter.errors import DeadlineError, NotCommittedError, UnknownOutcomeError
from safewriter.objects import StoreError
from safewriter.record.document import CommitPoint, Status
from safewriter.schedule import Schedule
from safewriter.tables.delta.gate import GateState, GateStatus
from tests.support.hygiene import wait_for_hygiene
from tests.support.waiting import until
from tests.unit.safewriter.block.ending_bench import LANDED, LEAD_MS, FakeSession, ending
from tests.unit.safewriter.failing import Fault, Network
from tests.unit.safewriter.surroundings import WHOLE_MS
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from safewriter.block.ending import Ending
    from tests.unit.safewriter.job import Job


def test_a_jvm_that_hangs_at_the_deadline_costs_the_process_and_not_the_verdict(exits: list[int]) -> None:
    """py4j waits for ever; so the process ends with 124 and leaves the open document to its supervisor."""
    job = World().job().begin()
    gone = threading.Event()

    def hang() -> None:
        assert gone.wait(60)

    end = ending(job, FakeSession(answer=hang))
    watchdog = threading.Thread(target=end.at_deadline, daemon=True)
    watchdog.start()
    assert until(lambda: bool(exits))
    assert exits == [DeadlineError.exit_code]
    assert job.world.document.status is Status.IN_PROGRESS
    gone.set()
    watchdog.join(60)


def test_a_jvm_that_is_gone_at_the_deadline_is_settled_by_the_table(exits: list[int]) -> None:
    """Nothing is known of what was sent, so the table is fenced."""
    world = World()
    job = world.job().begin()

    def gone() -> None:
        raise ConnectionRefusedError

    end = ending(job, FakeSession(answer=gone))
    end.at_deadline()
    assert exits == []
    assert end.document.status is Status.ROLLED_BACK
    assert world.log.actions("txn")[-1]["appId"] == world.key
    assert not end.document.attempt.cleaned


def test_a_store_that_fails_at_the_deadline_ends_the_process(exits: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """No other thread of this process could settle it either."""
    job = World().job().begin()
    end = ending(job, FakeSession())

    def broken(*_: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr(type(job.recovery), "settle", broken)
    end.at_deadline()
    assert exits == [DeadlineError.exit_code]


def test_tasks_that_outlast_the_watchdog_are_cleaned_up_after_by_the_block(
    exits: list[int],
) -> None:
    """The watchdog must not wait for them; the block can, once their statement has ended."""
    world = World()
    job = world.job().begin()
    end = ending(job, FakeSession(quiet=iter([False, True])))
    end.at_deadline()
    assert not end.document.attempt.cleaned
    with pytest.raises(DeadlineError, match="rolled_back"):
        end.fail(RuntimeError("cancelled"))
    wait_for_hygiene()
    assert world.document.attempt.cleaned
    assert world.marked() == ()
    assert [key for key in world.lake.contents() if key.startswith(job.document.attempt.prefix)] == []


def test_tasks_that_never_end_keep_their_marker(exits: list[int]) -> None:
    """A later settler cleans up."""
    world = World()
    job = world.job().begin()
    end = ending(job, FakeSession(quiet=iter([False, False])))
    end.at_deadline()
    with pytest.raises(DeadlineError):
        end.fail(None)
    wait_for_hygiene()
    assert world.marked() == (job.attempt.nonce,)


def test_a_success_that_was_said_is_not_touched_by_the_watchdog(exits: list[int]) -> None:
    """The watchdog fires too late to matter."""
    world = World()
    job = world.job().begin().land()
    end = ending(job, FakeSession(sight=GateState(GateStatus.LANDED, passed=True, version=2, refusal="", stray="")))
    end.succeed()
    end.at_deadline()
    assert end.succeeded
    assert world.document.status is Status.COMMITTED
    assert world.document.attempt.settled_by == "success"


def test_a_block_that_could_not_be_opened_is_rolled_back_at_once() -> None:
    """Its gate never opened, so nothing was sent: no fence, no marker, and no retry has to wait."""
    world = World()
    job = world.job().begin()
    ending(job, FakeSession(has_begun=False)).never_began()
    assert world.document.status is Status.ROLLED_BACK
    assert world.marked() == ()
    assert world.log.actions("txn") == []


def test_a_gate_that_was_used_before_its_block_could_be_opened_is_asked() -> None:
    """Another thread of the script has written through it: the ending looks for its commit and undoes it."""
    world = World()
    job = world.job().begin().land()
    passed = GateState(GateStatus.LANDED, passed=True, version=2, refusal="", stray="")
    ending(job, FakeSession(sight=passed)).never_began()
    assert world.document.status is Status.ROLLED_BACK
    assert world.log.live() == ["foreign-0.parquet"]


# -- an S3 that does not answer success() ------------------------------------------------------------------------------


class Outage:
    """S3 answers no request of one process while `is_on`; each nap of the process is counted, and lets time pass."""

    def __init__(self, world: World, *, ends_after_s: float = math.inf) -> None:
        self.world = world
        self.is_on = False
        self.denied = False
        self.ends_after_s = ends_after_s
        self.napped_s = 0.0
        self.network = Network(before=self._before)

    def _before(self, _: int) -> None:
        if self.is_on:
            raise StoreError("SlowDown", denied=self.denied)

    def nap(self, seconds: float) -> None:
        self.napped_s += seconds
        self.world.sleep(seconds)
        self.is_on = self.is_on and self.napped_s < self.ends_after_s


def out(
    commit_point: CommitPoint = CommitPoint.WRITE, *, deadline_ms: int | None = WHOLE_MS, ends_after_s: float = math.inf
) -> tuple[Outage, Job, Ending]:
    """A block that has landed, and an outage that begins before success()."""
    world = World(commit_point)
    outage = Outage(world, ends_after_s=ends_after_s)
    job = world.job(outage.network, deadline_ms=deadline_ms).begin().land()
    outage.is_on = True
    return outage, job, ending(job, FakeSession(sight=LANDED), sleep=outage.nap, commit_point=commit_point)


def test_an_outage_that_ends_before_the_deadline_costs_time_and_nothing_else() -> None:
    """Nine of ten minutes; then success() has its answer."""
    outage, _, end = out(ends_after_s=540)
    end.succeed()
    assert end.succeeded
    assert outage.world.document.attempt.settled_by == "success"


@pytest.mark.parametrize("lead_ms", [LEAD_MS, 60_000])
def test_success_waits_until_the_watchdogs_time_and_not_longer(lead_ms: int) -> None:
    """The rest of the time before the deadline is for settling."""
    _, job, end = out()
    assert job.deadline is not None
    end._block = dataclasses.replace(end._block, schedule=Schedule(job.deadline, lead_ms))
    with pytest.raises(UnknownOutcomeError):
        end.succeed()
    assert job.deadline.remaining_ms() == lead_ms


def test_without_a_deadline_success_waits_for_five_minutes() -> None:
    """The documented bound."""
    outage, _, end = out(deadline_ms=None)
    begun_s = time.monotonic()
    with pytest.raises(UnknownOutcomeError):
        end.succeed()
    asked_s = time.monotonic() - begun_s  # at most; it counts, too
    assert 300 - asked_s <= outage.napped_s <= 300


@pytest.mark.parametrize(
    ("commit_point", "status"), [(CommitPoint.WRITE, Status.COMMITTED), (CommitPoint.SUCCESS, Status.ROLLED_BACK)]
)
def test_once_success_was_said_lack_of_an_answer_does_not_undo(commit_point: CommitPoint, status: Status) -> None:
    """The block is settled like one that was killed from outside, and the error states the verdict."""
    outage, _, end = out(commit_point)
    with pytest.raises(UnknownOutcomeError) as raised:
        end.succeed()
    outage.is_on = False
    end.fail(raised.value)
    assert outage.world.document.status is status
    assert (outage.world.log.live() == ["foreign-0.parquet"]) == (status is Status.ROLLED_BACK)
    notes = getattr(raised.value, "__notes__", [])
    assert any("committed after all" in note for note in notes) == (status is Status.COMMITTED)


def test_a_refusal_is_not_waited_for() -> None:
    """A missing permission does not come back; but the write is not undone because of it."""
    outage, _, end = out()
    outage.denied = True
    with pytest.raises(UnknownOutcomeError):
        end.succeed()
    assert outage.napped_s == 0
    outage.is_on = False
    end.fail(None)
    assert outage.world.document.status is Status.COMMITTED


def test_an_answer_that_is_lost_is_found_by_asking_again() -> None:
    """The document is committed already; the next try recognises its own verdict."""
    world = World()
    job = world.job(network := Network(Fault.LOSE_REPLY, 7)).begin().land()
    naps: list[float] = []
    assert network.mutations == 6
    end = ending(job, FakeSession(sight=LANDED), sleep=naps.append)
    end.succeed()
    assert network.fired
    assert naps == [0.5]
    assert end.document.status is Status.COMMITTED


def test_what_the_table_does_not_hold_is_rolled_back_after_success_too() -> None:
    """That is an answer: nothing is retried, and the block's leftovers are undone."""
    world = World()
    job = world.job().begin().land()
    stray = GateState(GateStatus.NONE, passed=True, version=-1, refusal="second commit", stray="")
    end = ending(job, FakeSession(sight=stray))
    with pytest.raises(NotCommittedError) as raised:
        end.succeed()
    end.fail(raised.value)
    assert world.document.status is Status.ROLLED_BACK
    assert world.log.live() == ["foreign-0.parquet"]


@pytest.mark.parametrize("commit_point", CommitPoint)
def test_a_watchdog_that_was_first_answers_for_success(commit_point: CommitPoint) -> None:
    """It could not wait for a slow request; success() accepts its verdict, or raises."""
    outage, job, end = out(commit_point)

    def nap(seconds: float) -> None:
        outage.is_on = False
        end._one_at_a_time.release()
        end.at_deadline()
        end._one_at_a_time.acquire()

    end._sleep = nap
    if commit_point is CommitPoint.SUCCESS:
        with pytest.raises(DeadlineError, match="rolled_back"):
            end.succeed()
    else:
        end.succeed()
    assert end.succeeded is (commit_point is CommitPoint.WRITE)
    assert job.world.document.attempt.settled_by == "deadline"


def test_a_document_that_is_gone_is_no_answer() -> None:
    """Somebody has deleted it: nothing is undone, and the marker stays for the sweeper, which reads the table."""
    world = World()
    job = world.job().begin().land()
    end = ending(job, FakeSession(sight=LANDED))
    world.bucket.delete(f"checkpoints/{world.key}.json")
    with pytest.raises(UnknownOutcomeError, match="is gone") as raised:
        end.succeed()
    end.fail(raised.value)
    assert world.log.live() == ["foreign-0.parquet", *(file.path for file in job.files)]
    assert world.marked() == (job.attempt.nonce,)
