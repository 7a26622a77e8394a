"""One fault, and everything that comes after it, the same for every format.

The boundaries are not listed anywhere: the n-th mutating request is hit, n = 1, 2, 3 … until a run ends unhurt. What
must hold after each: the verdict that recovery writes is what an independent reader finds; the retry brings the batch
in exactly once; nothing of the dead attempt is left once its grace is over.
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
from scripts.emulator.rules import Kill, Match, Rule
from tests.faults.victims import DEADLINE_MS
from tests.support.network_faults import Late, LoseReply
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest
    from pyspark.sql import SparkSession

    from scripts.emulator.s3 import EmbeddedS3
    from tests.faults.victims import Victims
    from tests.support.observed import Observed
    from tests.support.processes import Child

__all__ = ["ANY", "Case", "Phase", "fault", "faults_at_every_boundary", "thaw_after_the_retry"]

Phase = Literal["before", "torn", "after", "late", "lost"]
ANY = Match(is_mutating=True)
BOUNDARIES_MAX = 40


class Wrote(Protocol):
    """What a write that has ended tells."""

    @property
    def already_committed(self) -> bool: ...


class Case(ABC):
    """One table and one run."""

    def __init__(self, spark: SparkSession, s3: EmbeddedS3, table: Observed, name: str) -> None:
        self.spark, self.s3, self.name = spark, s3, name
        self.table = table

    @abstractmethod
    def order(self, run_key: str) -> str:
        """What a victim is told."""

    @abstractmethod
    def check(self) -> None:
        """The rows are those of the verdict."""

    @abstractmethod
    def write_again(self) -> Wrote:
        """Do in this process what the victim was told."""

    def recover(self) -> None:
        """Let the store's clock pass deadline and grace, let the sweeper come twice, and check the verdict."""
        self.s3.wire.clock_ahead_s = 2 * DEADLINE_MS / 1000
        self.sweep()
        history = self.table.history()
        self.sweep()
        assert self.table.history() == history
        self.check()

    def sweep(self) -> None:
        """Let the sweeper come, which must finish with everything."""
        checkpoints = self.table.checkpoints
        recovery = Recovery(checkpoints, table_store, clock=epoch_ms)
        sweep = Sweeper(checkpoints, recovery, epoch_ms, may_go_on=lambda: True).sweep()
        assert sweep.count(Action.FAILED, Action.UNREADABLE, Action.LEFT, Action.UNCLEAN) == 0, sweep.looks

    def retry(self) -> None:
        """The retry brings the batch in exactly once, and all attempts are cleaned up after."""
        self.write_again()
        Recovery(self.table.checkpoints, table_store, clock=epoch_ms).clean(self.table.document().write_key)
        self.check()
        document = self.table.document()
        assert document.status == "committed"
        assert all(attempt.cleaned for attempt in document.attempts)


def thaw_after_the_retry(case: Case, victim: Child, held: Match, nth: int, run_key: str) -> None:
    """SIGSTOP before the `nth` request that matches, recovery and retry elsewhere, SIGCONT: the victim finds out by
    itself that it is over, and changes nothing.
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
    """Hit every mutating request, from the marker to the verdict: killed before, in, after, or while its request is on
    its way and lands behind the recovery; or alive, with its answer lost. Return how many there are.
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
        # A catalog's server goes on with what it was asked, and ends with it before the clock says that grace is over.
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
    """Return what happens to a request that is hit; `kill` ends who has sent it, `late` does by itself."""
    if phase == "late":
        return late
    return LoseReply(503) if phase == "lost" else Kill(phase, kill)
