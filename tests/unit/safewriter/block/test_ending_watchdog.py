"""What the watchdog calls on a session, how long it waits, and what it leaves to the block."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from safewriter.deadline import Deadline
from safewriter.errors import DeadlineError
from safewriter.record.document import Status
from safewriter.schedule import Schedule
from safewriter.settle.recovery import Cause, Evidence
from safewriter.tables.delta.gate import GateState, GateStatus
from tests.support.hygiene import wait_for_hygiene
from tests.unit.safewriter.block.ending_bench import LANDED, LEAD_MS, NOTHING_SENT, FakeSession, ending
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from collections.abc import Callable


IN_FLIGHT = GateState(GateStatus.IN_FLIGHT, passed=True, version=-1, refusal="", stray="")


@dataclass
class AskedSession(FakeSession):
    """Records its calls."""

    asked: list[str] = field(default_factory=list)
    patience_s: list[float] = field(default_factory=list)

    def shut(self, reason: str) -> None:
        self.asked.append("shut")

    def cancel(self) -> None:
        self.asked.append("cancel")

    def wait_until_quiet(self, patience_s: float) -> bool:
        self.patience_s.append(patience_s)
        return next(self.quiet)

    def report(self) -> GateState:
        self.asked.append("seen")
        return self.sight


class Timer:
    """A timer that never fires."""

    def __init__(self, made: list[Timer], seconds: float, action: Callable[..., object], arguments: tuple[int]) -> None:
        made.append(self)
        self.what = (seconds, action, arguments)
        self.daemon = False
        self.state = "made"

    def start(self) -> None:
        assert self.daemon, "an interpreter that ends would wait for it"
        self.state = "started"

    def cancel(self) -> None:
        self.state = "cancelled"


def test_the_last_resort_is_three_quarters_of_the_lead_away(exits: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A hung JVM may take a quarter for each of its answers; then the process ends, before the deadline."""
    made: list[Timer] = []
    monkeypatch.setattr(threading, "Timer", lambda *given: Timer(made, *given))
    end = ending(World().job().begin(), FakeSession())

    end.at_deadline()

    (timer,) = made
    seconds, action, arguments = timer.what
    assert seconds == pytest.approx(3 * LEAD_MS / 4000)
    assert (action, arguments) == (exits.append, (DeadlineError.exit_code,))
    assert timer.state == "cancelled"


@pytest.mark.usefixtures("exits")
def test_the_program_s_own_end_does_not_keep_the_watchdog_waiting() -> None:
    """The holder of the lock may hang in a call into the JVM: after a while the watchdog settles without the lock."""
    world = World()
    end = ending(world.job().begin(), FakeSession())
    held = threading.Lock()
    end._one_at_a_time = held
    assert held.acquire()

    end.at_deadline()

    assert world.document.status is Status.ROLLED_BACK
    assert held.locked()


@pytest.mark.usefixtures("exits")
def test_the_watchdog_gives_the_lock_back() -> None:
    """The program's own end comes after it."""
    end = ending(World().job().begin(), FakeSession())

    end.at_deadline()

    assert not end._one_at_a_time.locked()


@pytest.mark.usefixtures("exits")
def test_a_success_after_the_deadline_asks_the_document_and_not_the_session() -> None:
    """The watchdog has cancelled the block, and the JVM may hang."""
    job = World().job().begin().land()
    session = AskedSession(sight=LANDED)
    end = ending(job, session)
    end.at_deadline()
    session.asked.clear()

    end.succeed()

    assert session.asked == []
    assert end.document.attempt.settled_by == "deadline"


@pytest.mark.usefixtures("exits")
def test_after_a_success_the_session_is_not_asked_any_more() -> None:
    """It belongs to the program again, which may be writing another table."""
    job = World().job().begin().land()
    session = AskedSession(sight=LANDED)
    end = ending(job, session)
    end.succeed()
    assert session.asked == ["shut", "seen"]  # what is read back must not change any more

    end.at_deadline()

    assert session.asked == ["shut", "seen"]
    assert end.document.attempt.settled_by == "success"


@pytest.mark.usefixtures("exits")
def test_a_later_attempt_s_commit_is_no_answer_to_the_deadline() -> None:
    """The write is committed, but by another attempt, not by this block."""
    world = World()
    end = ending(world.job().begin(), FakeSession())
    world.settle(Cause.KILLED, Evidence(1, nothing_sent=True))
    assert world.job().begin().land().success()
    end.at_deadline()
    assert end.document.status is Status.COMMITTED

    with pytest.raises(DeadlineError):
        end.succeed()


@pytest.mark.usefixtures("exits")
def test_what_the_watchdog_has_cleaned_is_not_waited_for() -> None:
    """All tasks had ended, so nothing is left to wait for."""
    session = AskedSession(quiet=iter([True, True]))
    end = ending(World().job().begin(), session)
    end.at_deadline()
    asked = [*session.asked]

    with pytest.raises(DeadlineError):
        end.fail(RuntimeError("cancelled"))
    assert session.asked == asked


def test_what_the_watchdog_could_not_settle_is_not_cleaned(exits: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Under an open document nothing is deleted, so the block does not wait for it."""
    session = AskedSession(quiet=iter([True, True]))
    job = World().job().begin()
    job.recovery.settling = replace(job.recovery.settling, may_go_on=lambda: False)
    end = ending(job, session)
    end.at_deadline()
    assert exits == [DeadlineError.exit_code]
    asked = [*session.asked]

    with pytest.raises(DeadlineError):
        end.fail(RuntimeError("cancelled"))
    assert session.asked == asked


@pytest.mark.usefixtures("exits")
def test_half_the_lead_is_left_when_tasks_outlast_the_watchdog() -> None:
    """The block waits for its tasks, but not into the time that the process needs to end."""
    world = World()
    session = AskedSession(quiet=iter([False, False]))
    end = ending(world.job().begin(), session)
    end._block = replace(
        end._block, schedule=Schedule(Deadline(world.now_ms + 10_000, world.now_ms, world.clock), LEAD_MS)
    )
    end.at_deadline()

    with pytest.raises(DeadlineError):
        end.fail(RuntimeError("cancelled"))
    assert session.patience_s == [LEAD_MS / 4000, 10.0 - LEAD_MS / 2000]


@pytest.mark.usefixtures("exits")
def test_a_success_that_the_watchdog_has_found_is_cleaned_like_any(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is unknown whether its tasks left files, so they are looked for; the note stays."""
    world = World()
    job = world.job().begin().land()
    end = ending(job, FakeSession(sight=LANDED, quiet=iter([False, True])))
    end.at_deadline()
    world.lake.put(job.leftover, b"late")
    end.succeed()
    asked = len(job.network.sent)

    end.finish(files_stay=False)
    wait_for_hygiene()

    assert job.leftover not in world.lake.contents()
    assert not any(sent.key.startswith("notes/") for sent in job.network.sent[asked:])


def test_a_commit_that_is_on_its_way_while_the_block_cannot_be_opened_is_fenced() -> None:
    """Another thread of the script has used the gate already: the commit may land, so it must be fenced off."""
    world = World()
    job = world.job().begin()

    ending(job, FakeSession(sight=IN_FLIGHT)).never_began()

    assert world.document.status is Status.ROLLED_BACK
    assert [txn["appId"] for txn in world.log.actions("txn")] == [world.key]
    assert not world.document.attempt.cleaned


@pytest.mark.parametrize(
    ("sight", "quiet", "fenced", "cleaned"),
    [(NOTHING_SENT, True, 0, True), (NOTHING_SENT, False, 0, False), (IN_FLIGHT, True, 1, False)],
)
def test_what_is_known_of_a_failed_block_decides_on_fence_and_clean_up(
    sight: GateState, *, quiet: bool, fenced: int, cleaned: bool
) -> None:
    """A commit that was sent is fenced; files are removed at once only if no task and no request can still run."""
    world = World()
    session = AskedSession(sight=sight, quiet=iter([quiet]))

    ending(world.job().begin(), session).fail(RuntimeError("the script's own"))

    assert session.asked == ["shut", "cancel", "seen"]
    assert len(world.log.actions("txn")) == fenced
    assert world.document.attempt.cleaned is cleaned
