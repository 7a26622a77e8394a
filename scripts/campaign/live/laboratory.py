"""Carry out one case: a write that is hit at one request, the recovery, what arrives late, the retry.

The tables are read by deltalake and pyiceberg. A process carries out one case at a time, since the guard's requests
name no table: so the S3 is the case's alone.
"""

from __future__ import annotations

import signal
import tempfile
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Self

import pyarrow as pa

from safewriter.deadline import epoch_ms
from safewriter.settle.sweeper import Sweeper
from scripts.campaign.job import AFTER, BASE, Order
from scripts.campaign.judging import Seen, violations_of
from scripts.campaign.record import CaseRecord
from scripts.emulator.network_faults import Late, LoseReply
from scripts.emulator.rules import Kill, Match, Rule
from scripts.experiment.ground import DEADLINE_MS, Ground, until
from scripts.experiment.processes import JobProcess
from scripts.experiment.tables import table_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from scripts.campaign.live.cases import Case
    from scripts.emulator.exchange import Reply, Request
    from scripts.emulator.rules import Effect
    from scripts.experiment.processes import Ended
    from scripts.experiment.tables import ExperimentTable

__all__ = ["Laboratory"]

_WAIT_S: Final = 300.0
_SAID_MAX: Final = 2000


class Laboratory:
    """A context manager: one S3, for one case at a time."""

    def __init__(self) -> None:
        self._ground = Ground()

    def __enter__(self) -> Self:
        self._ground.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._ground.__exit__()

    def carry_out(self, case: Case) -> CaseRecord:
        """Carry out a case. Whatever goes wrong with the harness itself is a violation, too."""
        began = time.monotonic()
        with tempfile.TemporaryDirectory(dir=self._ground.folder) as folder:
            run = _CaseRun(case, self._ground, folder)
            try:
                seen = run.play()
                if run.rule is not None and run.rule.hits == 0 and run.code != 0:
                    raise RuntimeError(f"the write has ended by itself, before its request: {run.error}")  # noqa: TRY301
            except Exception as error:  # noqa: BLE001 - it must be counted, and the campaign goes on
                seen, run.error = Seen(harness_failed=True), f"{type(error).__name__}: {error}"
            finally:
                run.end()
        return CaseRecord(
            case=case.name,
            hit=run.rule is not None and run.rule.hits > 0,
            operation=run.operation,
            key_class=run.key_class,
            acknowledged=seen.acknowledged,
            returncode=run.code,
            verdict=seen.verdict,
            landed=seen.landed,
            orphans=seen.orphans,
            violations=violations_of(seen),
            seconds=round(time.monotonic() - began, 1),
            error=run.error,
        )


class _CaseRun:
    """One case on its way."""

    def __init__(self, case: Case, ground: Ground, folder: str) -> None:
        self.rule: Rule | None = None
        self.code: int | None = None
        self.operation: str | None = None
        self.key_class: str | None = None
        self.error: str | None = None
        self._case, self._write, self._ground = case, case.sequence, ground
        self._place = ground.place(f"{case.name}-{uuid.uuid4().hex[:8]}", folder)
        self._table: ExperimentTable = table_of(self._write.table_format, self._place)
        self._wire = ground.s3.wire
        self._processes: list[JobProcess] = []

    def play(self) -> Seen:
        """Carry it out, and return what was seen."""
        self._table.make(pa.table({"id": pa.array(BASE, pa.int64())}))
        victim = self._start()
        late = Late(then="waits" if self._write.phase == "frozen" else "dropped", end=self._stopper(victim))
        self.rule = self._wire.add(
            Rule(Match(is_mutating=True), self._noted(self._fault(victim, late)), nth=self._case.nth)
        )
        with ThreadPoolExecutor(1) as pool:
            end = pool.submit(victim.wait)
            try:
                return self._follow(victim, end, late)
            finally:
                victim.signal(signal.SIGCONT)
                victim.signal()
                late.release()

    def _follow(self, victim: JobProcess, end: Future[Ended], late: Late) -> Seen:
        if self._write.phase == "frozen":
            until(lambda: end.done() or self._is_hit(), _WAIT_S, f"{self._case.name} has been hit or has ended")
            if not end.done():
                return self._thawed(victim, end, late)
        self._note_end(end.result())
        self._ground.wait_until_quiet(_WAIT_S)
        self._wire.clear_rules()
        verdict, found = self._recover(), self._table.ids()
        late.release()
        changed = (self._verdict(), self._table.ids()) != (verdict, found)
        acknowledged = self.code == 0
        # A caller retries what was not acknowledged; that a guarded write may be started twice is a promise of its own.
        retry_succeeded = (acknowledged and not self._write.guarded) or self._retry()
        return self._seen(verdict, found, acknowledged=acknowledged, changed=changed, retry_succeeded=retry_succeeded)

    def _thawed(self, victim: JobProcess, end: Future[Ended], late: Late) -> Seen:
        """Recover and retry beside the victim that stands still, and let it go on behind that."""
        self._wire.clear_rules()
        verdict, found = self._recover(), self._table.ids()
        retry_succeeded = self._retry()
        behind = self._verdict(), self._table.ids()
        late.release()
        victim.signal(signal.SIGCONT)
        self._note_end(end.result(_WAIT_S))
        changed = (self._verdict(), self._table.ids()) != behind
        seen = self._seen(verdict, found, acknowledged=self.code == 0, changed=changed, retry_succeeded=retry_succeeded)
        return replace(seen, thawed=True)

    def _retry(self) -> bool:
        retried = self._start().wait()
        if retried.code != 0:
            self.error = (retried.out + retried.errors)[-_SAID_MAX:]
        return retried.code == 0

    def _seen(
        self,
        verdict: str | None,
        found: tuple[int, ...],
        *,
        acknowledged: bool,
        changed: bool,
        retry_succeeded: bool,
    ) -> Seen:
        # The sweeper comes once more, for files that have arrived late; the retry's own document must say committed.
        committed = not self._write.guarded or self._recover() == "committed"
        return Seen(
            guarded=self._write.guarded,
            acknowledged=acknowledged,
            verdict=verdict,
            before=BASE,
            after=AFTER[self._write.statement],
            found=found,
            found_at_end=self._table.ids(),
            retry_succeeded=retry_succeeded and committed,
            changed=changed,
            orphans=len(self._table.view().orphans),
        )

    def end(self) -> None:
        """Leave nothing for the next case."""
        for process in self._processes:
            process.signal(signal.SIGCONT)
            process.signal()
        self._wire.clear_rules()
        self._wire.clear_trace()
        self._wire.clock_ahead_s = 0.0

    def _start(self) -> JobProcess:
        self._wire.clock_ahead_s = 0.0
        order = Order(
            table=self._table.name,
            table_format=self._write.table_format,
            statement=self._write.statement,
            guarded=self._write.guarded,
            settings=dict(self._table.settings),
        )
        process = JobProcess(
            "scripts.campaign.job", order, self._ground.variables(self._place.prefix), self._place.folder
        )
        self._processes.append(process)
        return process

    def _stopper(self, victim: JobProcess) -> Callable[[], None]:
        number = signal.SIGSTOP if self._write.phase == "frozen" else signal.SIGKILL
        return lambda: victim.signal(number)

    def _fault(self, victim: JobProcess, late: Late) -> Effect:
        phase = self._write.phase
        if phase == "late" or phase == "frozen":  # noqa: PLR1714 - the type checker follows only this form
            return late
        return LoseReply(503) if phase == "lost" else Kill(phase, victim.signal)

    def _noted(self, effect: Effect) -> Effect:
        def act(request: Request) -> Reply | Callable[[], Reply]:
            self.operation, self.key_class = request.operation, request.key_class
            return effect(request)

        return act

    def _is_hit(self) -> bool:
        return self.rule is not None and self.rule.fired(timeout_s=0)

    def _note_end(self, ended: Ended) -> None:
        self.code = ended.code
        if ended.code not in (0, -signal.SIGKILL):
            self.error = (ended.out + ended.errors)[-_SAID_MAX:]

    def _recover(self) -> str | None:
        """Let the sweeper come when all grace is over, as in a function's account; return the guard's verdict."""
        if not self._write.guarded:
            return None
        self._wire.clock_ahead_s = 2 * DEADLINE_MS / 1000
        Sweeper(self._ground.checkpoints, self._ground.recovery, epoch_ms, may_go_on=lambda: True).sweep()
        return self._verdict()

    def _verdict(self) -> str | None:
        """Return what the guard's document says now; without one, nothing was claimed."""
        if not self._write.guarded:
            return None
        document = self._ground.document(self._place.prefix, self._table.name, self._write.table_format)
        return "rolled_back" if document is None else str(document.status)
