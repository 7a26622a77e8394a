"""One attempt of a script, made as by the handler but in this process: the run's record, a journal, and the verdicts.

The record of runs, the supervisor that settles the writes, and the judge of the final state are the handler's.
"""

from __future__ import annotations

import os
import threading
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from unittest.mock import patch

from pyspark.sql import SparkSession

from handler.input_errors import InputError
from handler.outcome.evidence import JobEvidence
from handler.outcome.outcome import judge, of_error
from handler.process.child import Ended
from handler.process.memory_kills import MemoryKills
from handler.request.job import Job
from handler.runs.store import Runs
from handler.spark_settings.tuning import digest_of
from safewriter.deadline import Deadline, epoch_ms
from safewriter.objects.location import Location
from safewriter.record import journal
from safewriter.record.document import Status
from safewriter.schedule import Schedule
from safewriter.settings import Settings
from safewriter.settle.supervisor import Supervision
from tests.lab.experiment.ground import DEADLINE_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from handler.outcome.state import Outcome
    from safewriter.objects.store import ObjectStore

__all__ = ["Run", "attempted"]

_THREAD_S: Final = 60.0
_SETTLE_MS: Final = 60_000
_WARN_BEFORE_MS: Final = 30_000


@dataclass(frozen=True, slots=True)
class Run:
    """A run: `variables` are the same for all its attempts. `folder`: a local one, for the journals. `store`: its
    checkpoint bucket.
    """

    key: str
    variables: Mapping[str, str]
    folder: Path
    store: ObjectStore

    @property
    def job(self) -> Job:
        """The run's job, as the handler names it."""
        return Job(
            entry_point=Location("scripts", f"{self.key}.py"),
            arguments=(),
            conf={},
            py_files=(),
            run_key=self.key,
            client_token=self.key,
            name=None,
            tags={},
            trigger_event=None,
            settings=digest_of({}),
        )


def attempted(run: Run, code: str, script: Callable[[], None]) -> Outcome:
    """Carry out one attempt of a script; `code` identifies its content. Its error is part of the outcome."""
    run_id = uuid.uuid4().hex
    runs = Runs(run.store, epoch_ms)
    now_ms = epoch_ms()
    schedule = Schedule.of(Deadline(now_ms + DEADLINE_MS, now_ms), _WARN_BEFORE_MS)
    try:
        begun = runs.begin(run.job, run_id=run_id, request_id=run_id, schedule=schedule, code=code)
    except InputError as error:
        return of_error(error, None, started=False)
    outcome, may_hold_writes = _judged(run, run_id, script)
    runs.end(begun, state=outcome.state.value, may_hold_writes=may_hold_writes)
    return outcome


def _judged(run: Run, run_id: str, script: Callable[[], None]) -> tuple[Outcome, bool]:
    """Return the outcome of an attempt, and whether one of its writes may be in a table."""
    path = run.folder / f"journal-{run_id}"
    variables = {**run.variables, "SOAL_RUN_ID": run_id, "SOAL_JOURNAL": str(path)}
    with (
        patch.dict(os.environ, {**variables, "SOAL_JOB_FINGERPRINT": run.job.fingerprint}),
        journal.Journal(path) as lines,
    ):
        began = epoch_ms()
        code = _exit_code(script, path)
        ended = Ended(code, None, None, began, epoch_ms(), 0, frozenset(), code)
        session = SparkSession.getActiveSession()
        settings = {} if session is None else {one: str(value) for one, value in session.conf.getAll.items()}
        supervision = Supervision(lines, Settings.from_environment(os.environ), spark_settings=settings)
        evidence = JobEvidence(
            ended=ended,
            writes=supervision.settle(budget_ms=_SETTLE_MS),
            journal=lines.entries(),
            unsettled=supervision.doubt() or "",
            memory_kills=MemoryKills(0, 0),
            saw_java_out_of_memory=False,
            retry="a retry",
        )
        return judge(evidence), any(write.status != Status.ROLLED_BACK for write in evidence.writes or ())


def _exit_code(script: Callable[[], None], path: Path) -> int:
    """Run a script as Python would, wait for its non-daemon threads, and return its exit code."""
    before = set(threading.enumerate())
    try:
        script()
        code = 0
    except SystemExit as end:
        code = 0 if end.code is None else end.code if isinstance(end.code, int) else 1
    except BaseException as error:  # noqa: BLE001 - whatever a script may end with, KeyboardInterrupt too
        code = getattr(error, "exit_code", 1)
        journal.append(path, "uncaught", type=type(error).__name__, message=str(error)[:4000], exitCode=code)
    for thread in set(threading.enumerate()) - before:
        if not thread.daemon or thread.name == "safewriter-tidy":
            thread.join(_THREAD_S)
    journal.append(path, "python_exited", exitCode=code)
    return code
