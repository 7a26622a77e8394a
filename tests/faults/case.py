"""One fault, and everything that comes after it, the same for every format.

The boundaries are not listed anywhere: the n-th mutating request is hit, n = 1, 2, 3 … until a run has no n-th one.
After each fault: recovery's verdict matches what an independent reader finds; the retry writes the batch exactly once;
no file or marker of the dead attempt is left after its grace.
"""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal, Protocol

from safewriter.deadline import epoch_ms
from safewriter.objects.s3 import table_store
from safewriter.settle.one_write import Action
from safewriter.settle.recovery import Recovery
from safewriter.settle.sweeper import Sweeper
from soal.testing.s3.rules import Kill, Match, Rule
from tests.faults.victims import DEADLINE_MS
from tests.support.network_faults import Late, LoseReply
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest
    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.faults.victims import Victims
    from tests.support.observed import Observed
    from tests.support.processes import Child

__all__ = ["ANY", "Case", "Phase", "fault", "faults_at_every_boundary", "thaw_after_the_retry"]

Phase = Literal["before", "torn", "after", "late", "lost"]
ANY = Match(is_mutating=True)
BOUNDARIES_MAX = 40


class Wrote(Protocol):
    """The report of a write that has ended."""

    @property
    def already_committed(self) -> bool: ...


class Case(ABC):
    """One table and one run."""

    def __init__(self, spark: SparkSession, s3: EmbeddedS3, table: Observed, name: str) -> None:
        self.spark, self.s3, self.name = spark, s3, name
        self.table = table

    @abstractmethod
    def order(self, run_key: str) -> str:
        """The line that orders a victim's write."""

    @abstractmethod
    def check(self) -> None:
        """Check that the rows match the verdict."""

    @abstractmethod
    def write_again(self) -> Wrote:
        """Carry out the victim's order in this process."""

    def recover(self) -> None:
        """Advance the store's clock past deadline and grace, run the sweeper twice, and check the verdict."""
        self.s3.wire.clock_ahead_s = 2 * DEADLINE_MS / 1000
        self.sweep()
        history = self.table.history()
        self.sweep()
        assert self.table.history() == history
        self.check()

    def sweep(self) -> None:
        """Run the sweeper, which must finish everything."""
        checkpoints = self.table.checkpoints
        recovery = Recovery(checkpoints, table_store, clock=epoch_ms)
        sweep = Sweeper(checkpoints, recovery, epoch_ms, may_go_on=lambda: True).sweep()
        assert sweep.count(Action.FAILED, Action.UNREADABLE, Action.LEFT, Action.UNCLEAN) == 0, sweep.looks

    def retry(self) -> None:
        """Retry: it writes the batch exactly once, and all attempts are cleaned up afterwards."""
        self.write_again()
        Recovery(self.table.checkpoints, table_store, clock=epoch_ms).clean(self.table.document().write_key)
        self.check()
        document = self.table.document()
        assert document.status == "committed"
        assert all(attempt.cleaned for attempt in document.attempts)


def thaw_after_the_retry(case: Case, victim: Child, held: Match, nth: int, run_key: str) -> None:
    """SIGSTOP before the `nth` request that matches, recovery and retry elsewhere, SIGCONT: the victim notices by
    itself that it lost the write, and changes nothing.
    """
    late = Late(then="waits", end=lambda: victim.signal(signal.SIGSTOP))
    rule = case.s3.wire.add(Rule(held, late, nth=nth))
    victim.tell(case.order(run_key))
    assert until(lambda: rule.hits == 1), victim.said()
    case.recover()
    case.retry()
    history = case.table.history()
    case.s3.wire.clock_ahead_s = 0
    late.release()
    victim.signal(signal.SIGCONT)
    assert victim.end() == 1
    assert "acknowledged" not in victim.lines
    assert case.table.history() == history
    case.check()


def faults_at_every_boundary(
    s3: EmbeddedS3,
    victims: Victims,
    phase: Phase,
    make: Callable[[], Case],
    run_key: str,
    monkeypatch: pytest.MonkeyPatch,
) -> int:
    """Hit every mutating request, from the marker to the verdict: the victim is killed before, in, after, or while its
    request is pending and lands after the recovery; or it lives, and the answer is lost. Return their number.
    """
    for boundary in range(1, BOUNDARIES_MAX):
        s3.wire.clock_ahead_s = 0
        key = f"{run_key}-{boundary}"
        monkeypatch.setenv("SOAL_RUN_KEY", key)
        case = make()
        with victims.take() as victim:
            late = Late(end=victim.kill)
            rule = s3.wire.add(Rule(ANY, fault(phase, victim.kill, late), nth=boundary))
            victim.tell(case.order(key))
            code = victim.end()
            s3.wire.clear_rules()
        # A catalog's server completes pending requests before the clock passes the grace.
        assert until(lambda: s3.wire.is_quiet)
        if phase == "lost" and code == 0:
            assert case.table.document().status == "committed"
        case.recover()
        late.release()
        case.check()
        case.retry()
        if rule.hits == 0:
            assert "acknowledged" in victim.lines, victim.said()
            return boundary - 1
    raise AssertionError(f"no run of {BOUNDARIES_MAX} ended unhurt")


def fault(phase: Phase, kill: Callable[[], None], late: Late) -> Kill | LoseReply | Late:
    """Return the fault of a request; `kill` kills its sender, `late` does so by itself."""
    if phase == "late":
        return late
    return LoseReply(503) if phase == "lost" else Kill(phase, kill)
