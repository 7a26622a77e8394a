"""Carry out one case: a write that is hit at one request, the recovery, the late requests, the retry.

deltalake and pyiceberg read the tables. A process carries out one case at a time: the guard's requests name no table,
so each case needs the S3 to itself.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
import traceback
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Self
from unittest.mock import patch

import pyarrow as pa

from safewriter.deadline import epoch_ms
from safewriter.record.document import Status
from safewriter.settle.sweeper import Sweeper
from tests.lab.campaign.job import AFTER, BEFORE, Order, write
from tests.lab.campaign.judging import UNCLAIMED, Seen, violations_of
from tests.lab.campaign.record import CaseRecord
from tests.lab.campaign.warm import WarmSpark
from tests.lab.experiment.ground import DEADLINE_MS, Ground, until
from tests.lab.experiment.tables import table_of
from tests.lab.processes import JobProcess

if TYPE_CHECKING:
    from concurrent.futures import Future

    from tests.lab.campaign.live.cases import Case, Write
    from tests.lab.campaign.live.chance import ChanceCase
    from tests.lab.campaign.live.faults import Fault
    from tests.lab.experiment.tables import ExperimentTable
    from tests.lab.processes import Ended

__all__ = ["Laboratory"]

_WAIT_S: Final = 300.0
_SAID_MAX: Final = 2000


class Laboratory:
    """A context manager: one S3 of the backend `s3`, for one case at a time."""

    def __init__(self, s3: str) -> None:
        self._ground = Ground(s3)
        self._warm = WarmSpark()

    def __enter__(self) -> Self:
        self._ground.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._warm.stop()
        self._ground.__exit__()

    def carry_out(self, case: Case | ChanceCase) -> CaseRecord:
        """Carry out a case. Any error of the harness itself is a violation, too."""
        began = time.monotonic()
        fault = case.fault()
        with tempfile.TemporaryDirectory(dir=self._ground.folder) as folder:
            run = _CaseRun(case.name, case.write, fault, self._ground, self._warm, folder)
            try:
                seen = run.play()
                if not fault.is_hit and run.code != 0:
                    raise RuntimeError(f"the write has ended by itself, before its fault: {run.error}")  # noqa: TRY301
            except Exception as error:  # noqa: BLE001 - it must be counted, and the campaign goes on
                seen, run.error = Seen(harness_failed=True), f"{type(error).__name__}: {error}"
            finally:
                run.end()
        return CaseRecord(
            case=case.name,
            hit=fault.is_hit,
            operation=fault.operation,
            key_class=fault.key_class,
            exposed=run.exposed,
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
    """One case while it runs."""

    def __init__(self, name: str, kind: Write, fault: Fault, ground: Ground, warm: WarmSpark, folder: str) -> None:
        self.code: int | None = None
        self.error: str | None = None
        self.exposed: bool | None = None
        self._write, self._fault, self._ground, self._warm = kind, fault, ground, warm
        self._place = ground.place(f"{name}-{uuid.uuid4().hex[:8]}", folder)
        self._table: ExperimentTable = table_of(kind.table_format, self._place)
        self._before = BEFORE[kind.statement]
        self._wire = ground.s3.wire
        self._processes: list[JobProcess] = []

    def play(self) -> Seen:
        """Carry out the case, and return what was seen."""
        if self._before:
            self._table.make(pa.table({"id": pa.array(self._before, pa.int64())}))
        self._wire.clear_trace()
        victim = self._start(self._fault.deadline_ms)
        self._fault.plant(self._wire, victim)
        with ThreadPoolExecutor(1) as pool:
            end = pool.submit(victim.wait)
            try:
                return self._follow(victim, end)
            finally:
                victim.signal(signal.SIGCONT)
                victim.signal()
                self._fault.release()

    def _follow(self, victim: JobProcess, end: Future[Ended]) -> Seen:
        if self._fault.freezes:
            until(lambda: end.done() or self._fault.is_hit, _WAIT_S, "the writer has been stopped, or has ended")
            if not end.done():
                return self._thawed(victim, end)
        self._note_end(end.result())
        self._fault.end()
        self._ground.wait_until_quiet(_WAIT_S)
        self._wire.clear_rules()
        self.exposed = self._is_exposed()
        verdict, found = self._recover(), self._table.ids()
        self._fault.release()
        changed = self._has_changed(verdict, found)
        acknowledged = self.code == 0
        # A caller retries what was not acknowledged; that a guarded write may be started twice is a promise of its own.
        retry_succeeded = (acknowledged and not self._write.guarded) or self._retry()
        return self._seen(verdict, found, acknowledged=acknowledged, changed=changed, retry_succeeded=retry_succeeded)

    def _is_exposed(self) -> bool | None:
        """Return whether the fault came between the first data file and the answer to the commit."""
        if self._fault.at_ns is None:
            return None
        commit = "delta_log/commit" if self._write.table_format == "delta" else "iceberg/metadata"
        sent = [one for one in self._wire.trace() if one.operation == "PutObject"]
        began = min((one.started_ns for one in sent if one.key_class == "data"), default=None)
        answered = [one.ended_ns for one in sent if one.key_class == commit and one.status == HTTPStatus.OK]
        ended = min(answered, default=None)
        return began is not None and began <= self._fault.at_ns and (ended is None or self._fault.at_ns <= ended)

    def _thawed(self, victim: JobProcess, end: Future[Ended]) -> Seen:
        """Recover and retry while the victim is stopped, then let it continue."""
        self._wire.clear_rules()
        self.exposed = self._is_exposed()
        verdict, found = self._recover(), self._table.ids()
        retry_succeeded = self._retry()
        behind = self._verdict(), self._table.ids()
        self._fault.release()
        victim.signal(signal.SIGCONT)
        self._note_end(end.result(_WAIT_S))
        changed = self._has_changed(*behind)
        seen = self._seen(verdict, found, acknowledged=self.code == 0, changed=changed, retry_succeeded=retry_succeeded)
        return replace(seen, thawed=True)

    def _has_changed(self, verdict: str | None, found: tuple[int, ...]) -> bool:
        """Return whether something late has changed the table or the verdict.

        A write without a document has no verdict, and its claim may still arrive: the retry meets an open document.
        """
        now = self._verdict()
        claimed_late = verdict == UNCLAIMED and now == Status.IN_PROGRESS
        return self._table.ids() != found or not (now == verdict or claimed_late)

    def _retry(self) -> bool:
        """Start the job again; return whether it succeeded. A guarded one runs in a warm JVM, as with reuse on."""
        if not self._write.guarded:  # stock commits need a JVM of their own
            retried = self._start().wait()
            if retried.code != 0:
                self.error = (retried.out + retried.errors)[-_SAID_MAX:]
            return retried.code == 0
        self._wire.clock_ahead_s = 0.0
        try:
            with patch.dict(os.environ, self._ground.variables(self._place.prefix)):
                write(self._warm.session(self._table.settings), self._order())
        except Exception:  # noqa: BLE001 - whatever a job may end with
            self.error = traceback.format_exc()[-_SAID_MAX:]
            return False
        finally:
            for thread in threading.enumerate():
                if thread.name == "safewriter-tidy":
                    thread.join()
        return True

    def _seen(
        self,
        verdict: str | None,
        found: tuple[int, ...],
        *,
        acknowledged: bool,
        changed: bool,
        retry_succeeded: bool,
    ) -> Seen:
        # The sweeper runs once more, for files that arrived late; the retry's own document must say committed.
        committed = not self._write.guarded or self._recover() == "committed"
        return Seen(
            guarded=self._write.guarded,
            acknowledged=acknowledged,
            verdict=verdict,
            before=self._before,
            after=AFTER[self._write.statement],
            found=found,
            found_at_end=self._table.ids(),
            retry_succeeded=retry_succeeded and committed,
            changed=changed,
            orphans=len(self._table.view().orphans),
        )

    def end(self) -> None:
        """Clean up for the next case."""
        self._fault.end()
        for process in self._processes:
            process.signal(signal.SIGCONT)
            process.signal()
        self._wire.clear_rules()
        self._wire.clear_trace()
        self._wire.clock_ahead_s = 0.0

    def _start(self, deadline_ms: int = DEADLINE_MS) -> JobProcess:
        self._wire.clock_ahead_s = 0.0
        process = JobProcess(
            "tests.lab.campaign.job",
            self._order(),
            self._ground.variables(self._place.prefix, deadline_ms),
            self._place.folder,
        )
        self._processes.append(process)
        return process

    def _order(self) -> Order:
        return Order(
            table=self._table.name,
            table_format=self._write.table_format,
            statement=self._write.statement,
            guarded=self._write.guarded,
            settings=dict(self._table.settings),
        )

    def _note_end(self, ended: Ended) -> None:
        self.code = ended.code
        if ended.code not in (0, -signal.SIGKILL):
            self.error = (ended.out + ended.errors)[-_SAID_MAX:]

    def _recover(self) -> str | None:
        """Run the sweeper after all grace periods, as in a function's account; return the guard's verdict."""
        if not self._write.guarded:
            return None
        self._wire.clock_ahead_s = 2 * DEADLINE_MS / 1000
        Sweeper(self._ground.checkpoints, self._ground.recovery, epoch_ms, may_go_on=lambda: True).sweep()
        return self._verdict()

    def _verdict(self) -> str | None:
        """Return the status of the guard's document, or that the write is unclaimed; None if it has no guard."""
        if not self._write.guarded:
            return None
        document = self._ground.document(self._place.prefix, self._table.name, self._write.table_format)
        return UNCLAIMED if document is None else str(document.status)
