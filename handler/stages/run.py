"""Run a job: place, command, record, code, child, verdicts.

Spark starts while the handler writes the record and fetches the code: the JVM needs neither before the script begins.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from handler import observability
from handler.input_errors import InputError
from handler.outcome.evidence import JobEvidence, own_exit
from handler.outcome.outcome import judge
from handler.outcome.state import State
from handler.process.child import Shutdown
from handler.process.log import JobLog
from handler.process.memory_kills import read_counters
from handler.process.tree import resident_mb
from handler.redaction.secret_names import is_secret
from handler.runs.event_logs import keep
from handler.runs.run_supervisor import RunSupervisor
from handler.runs.store import Runs
from handler.runs.turn import hold_turn
from handler.sandbox.between_jobs import clean_all
from handler.sandbox.script import DownloadError, download
from handler.sandbox.script import place as places_of
from handler.spark.archive import why_unused
from handler.spark.command import compose
from handler.spark.environment import AttemptVariables
from handler.spark.installation import spark_file
from handler.spark.missing_dependencies import read_missing
from handler.stages.progress import Begun, Settled
from safewriter.record.document import Status
from safewriter.record.journal import Journal
from safewriter.settle.supervisor import OpenWrites

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from handler.outcome.state import Outcome
    from handler.process.child import Ended
    from handler.process.memory_kills import MemoryKills
    from handler.request.job import Job
    from handler.runs.turn import JobTurn
    from handler.sandbox.script import Files
    from handler.services import Services
    from handler.spark.command import Command
    from handler.spark.missing_dependencies import Missing
    from handler.stages.progress import Prepared, Progress
    from handler.stages.reuse import Reuse, SandboxAndJvm
    from safewriter.record.journal import Entry, Event

__all__ = ["run"]

_MEMORY_SHARE_MAX: Final = 0.8
"""Kill an idle JVM above this share of the function's memory: the next job's Python workers need the rest."""
_TABLES_MAX: Final = 1000
_EVENT_LOGS_MAX_MS: Final = 10_000


def run(prepared: Prepared, progress: Progress, environment: Mapping[str, str], services: Services) -> Outcome:
    """Run the prepared job, settle its writes, and judge the attempt."""
    schedule, reuse, job = prepared.schedule, services.reuse, prepared.job
    turn_of_job = hold_turn(
        job.coordination,
        schedule,
        run=job.run_key,
        warn=progress.warn,
        unfinished=lambda: _runs(prepared, services).unfinished(job.run_key),
    )
    with turn_of_job as turn, _own_directories(prepared, progress, reuse), _place(prepared, progress, reuse) as place:
        progress.turn = turn
        try:
            return _run_in(place, turn, prepared, progress, environment, services)
        finally:  # before the job's files are removed, which may use up the remaining time
            turn.give_back(progress.warn, schedule.left_ms(schedule.settle_by_ms))
            _keep_event_logs(prepared, progress, place)


def _runs(prepared: Prepared, services: Services) -> Runs:
    return Runs(services.store(prepared.settings.guard.checkpoint_bucket), services.clock)


def _run_in(
    place: SandboxAndJvm,
    turn: JobTurn,
    prepared: Prepared,
    progress: Progress,
    environment: Mapping[str, str],
    services: Services,
) -> Outcome:
    job, settings, invocation = prepared.job, prepared.settings, progress.invocation
    files = places_of(job, place.sandbox)
    attempt = AttemptVariables.of(invocation.run_id, invocation.request_id, invocation.deadline, turn.lend())
    inherited = {**environment, **services.credentials()}
    command = compose(job, files, place.sandbox, settings, prepared.machine, attempt, inherited, prepared.secrets)
    with Journal(place.sandbox.journal) as journal:  # before the child starts: it cannot delete an open file
        outcome, settled = _Run(prepared, progress, services, place, files, journal, turn).run(command)
    if outcome.state is State.SUCCESS:
        turn.completed(again=progress.begun is not None and progress.begun.run.record.turn_completed)
    too_large = resident_mb() > _MEMORY_SHARE_MAX * invocation.memory_mb
    has_secret = _brings_a_secret(job, settings.conf, settled.journal)
    if settings.reuse == "off" or not _may_wait(outcome, settled) or too_large or has_secret:
        place.end()
    return outcome


def _keep_event_logs(prepared: Prepared, progress: Progress, place: SandboxAndJvm) -> None:
    """Keep Spark's event logs, in at most half of the time that is left until the job's files must be removed."""
    if prepared.settings.event_logs == "off" or progress.begun is None:
        return
    runs, record, schedule = progress.begun.runs, progress.begun.run.record, prepared.schedule
    budget_ms = min(_EVENT_LOGS_MAX_MS, schedule.left_ms(schedule.settle_by_ms) // 2)
    missing = keep(
        place.sandbox.event_logs,
        runs.store,
        record,
        progress.redactor,
        budget_ms=budget_ms,
        when_overdue=place.end,
    )
    progress.warn(*missing)


def _place(prepared: Prepared, progress: Progress, reuse: Reuse) -> AbstractContextManager[SandboxAndJvm]:
    """Return the job's sandbox. Removing it, or an earlier one, must leave the time to report about it."""
    schedule = prepared.schedule
    return reuse.place(
        prepared.settings.tmp,
        may_clean_before=lambda: schedule.left_ms(schedule.begin_by_ms) > 0,
        may_clean_after=lambda: schedule.left_ms(schedule.settle_by_ms) > 0,
        warn=progress.warn,
    )


@contextmanager
def _own_directories(prepared: Prepared, progress: Progress, reuse: Reuse) -> Iterator[None]:
    """Clean the function's own directories before the job and after it."""
    schedule, paths = prepared.schedule, prepared.settings.own_directories

    def clean(until_ms: int) -> None:
        progress.warn(*clean_all(paths, lambda: schedule.left_ms(until_ms) > 0, reuse.sandbox))

    clean(schedule.begin_by_ms)
    try:
        yield
    finally:
        clean(schedule.settle_by_ms)


@dataclass(frozen=True, slots=True)
class _Run:
    """One job in its sandbox."""

    prepared: Prepared
    progress: Progress
    services: Services
    place: SandboxAndJvm
    files: Files
    journal: Journal
    turn: JobTurn

    def run(self, command: Command) -> tuple[Outcome, Settled]:
        """Start the command, let the script begin once its record and code exist, wait for the end, and judge."""
        progress, clock = self.progress, self.services.clock
        writes, masked = OpenWrites(self.journal), lru_cache(_TABLES_MAX)(progress.masked)  # a job prints many lines
        job_log = progress.job_log = JobLog(
            self.prepared.redactor,
            log=lambda line: observability.log_job_line(line, tuple(map(masked, writes.tables()))),
            metric=observability.print_metric,
            namespace=observability.NAMESPACE,
        )
        emulated = self.prepared.settings.memory_kills
        before = read_counters(emulated=emulated)
        # Spark needs the Python files when it starts; for everything else only the script has to wait, not the JVM.
        supervisor = self._begin() if self.prepared.job.py_files else None
        jvm = self.place.jvm_for(command)
        with self.services.start_child(command, job_log, clock=clock, jvm=jvm) as child:
            supervisor = supervisor or self._begin()
            progress.started = True
            shutdown = Shutdown(self.prepared.schedule.terminate_at_ms, self.prepared.schedule.kill_at_ms)
            try:
                self.place.sandbox.go.touch()
                ended = child.supervise(
                    shutdown,
                    clock=clock,
                    shutdown_clock=progress.invocation.deadline.clock,
                    beat=supervisor.beat,
                    may_go_on=self.turn.may_go_on,
                    seen_exit=lambda: own_exit(self.journal.entries()),
                )
                if ended.rests:
                    self.place.keep(child.jvm)
            except BaseException:
                progress.settled = self._settle(supervisor, None)
                raise
            settled = progress.settled = self._settle(supervisor, ended)
        kills = before.until(read_counters(emulated=emulated))
        progress.warn(*_remarks(ended, settled, job_log, kills))
        if reason := why_unused(self.prepared.settings.soal_home, self.place.sandbox.archive_log):
            progress.warn(f"{reason}, so Spark started slowly; scripts/setup, or a new image, makes it again")
        evidence = JobEvidence(
            ended=ended,
            turn_lost=self.turn.loss,
            journal=settled.journal,
            writes=settled.writes,
            unsettled=settled.problem,
            memory_kills=kills,
            saw_java_out_of_memory=job_log.saw_out_of_memory,
            retry=self.prepared.job.retry,
            redactor=self.prepared.redactor,
            missing=() if ended.exit_code == 0 else self._missing(),
        )
        return judge(evidence), settled

    def _missing(self) -> tuple[Missing, ...]:
        return read_missing(
            spark_file(self.prepared.settings.soal_home, "missing.toml"), self.prepared.settings.variant
        )

    def _begin(self) -> RunSupervisor:
        """Fetch the code and record the attempt, even if the code could not be fetched."""
        progress, job = self.progress, self.prepared.job
        runs = _runs(self.prepared, self.services)
        invocation = progress.invocation
        code, failure = self._fetch()
        begun = runs.begin(
            replace(job, name=None if job.name is None else progress.masked(job.name)),
            code=code,
            run_id=invocation.run_id,
            request_id=invocation.request_id,
            schedule=self.prepared.schedule,
            execution=invocation.execution,
            repeats=self.turn.repeats,
        )
        progress.begun = Begun(self.prepared, runs, begun)
        observability.name_run(begun.record, progress.masked)
        if failure is not None:
            raise failure
        if begun.has_other_code:
            progress.warn(
                f"the script was changed: attempt {begun.record.attempt} has other code ({job.entry_point}) than the"
                " run had until now; committed writes are skipped"
            )
        supervision = self.services.supervision(
            self.journal, self.prepared.settings.guard, spark_settings=self.prepared.job.conf
        )
        return RunSupervisor(supervision, runs, begun)

    def _fetch(self) -> tuple[str | None, Exception | None]:
        """Fetch the job's code; return its hash, or the error, which the caller raises only after the record has shown
        whether the run may continue.
        """
        started_ns = time.monotonic_ns()
        try:
            return download(self.prepared.job, self.files, self.services.client()), None
        except (InputError, DownloadError) as error:
            return None, error
        finally:
            self.progress.download_ms = _since_ms(started_ns)

    def _settle(self, supervisor: RunSupervisor, ended: Ended | None) -> Settled:
        started_ns = time.monotonic_ns()
        writes, problem = supervisor.settle(self.prepared.schedule.left_ms(self.prepared.schedule.settle_by_ms))
        return Settled(ended, self.journal.entries(), writes, problem, _since_ms(started_ns))


def _may_wait(outcome: Outcome, settled: Settled) -> bool:
    """Return whether the job has ended so that its JVM may wait for the next one: as SUCCESS, or INCOMPLETE by its own
    step, which was too late to begin the next write, with a final verdict on each of its writes.
    """
    if outcome.state is not State.INCOMPLETE:
        return outcome.state is State.SUCCESS
    events = {entry.event for entry in settled.journal}
    are_settled = all(write.status in (Status.COMMITTED, Status.ROLLED_BACK) for write in settled.writes or ())
    return "too_late" in events and "deadline" not in events and are_settled


def _brings_a_secret(job: Job, conf: Mapping[str, str], journal: Iterable[Entry]) -> bool:
    """Return whether a job's settings hold a secret that the function's do not. Java libraries (codecs, URL handlers,
    signers) keep copies of settings for the life of the JVM.
    """
    return any(entry.event == "secret_set" for entry in journal) or any(
        conf.get(key) != value and is_secret(key, value) for key, value in job.conf.items()
    )


def _since_ms(started_ns: int) -> int:
    return (time.monotonic_ns() - started_ns) // 1_000_000


_OF_BLOCKS: Final[Mapping[Event, str]] = {
    "block_left": "an earlier attempt had committed this write. The block ended at its statement, because Delta cannot"
    " skip a statement that creates a table. Lines after it in the block did not run",
    "block_outlived": "a statement of another thread still ran when the block ended. Rows that it writes to this table"
    " after that are not in it; wait for the thread before success()",
}
"""Warnings about blocks, by the journal's event."""


def _remarks(ended: Ended, settled: Settled, job_log: JobLog, kills: MemoryKills) -> Iterator[str]:
    """Yield warnings that the state does not imply."""
    if kills.job:
        yield f"the kernel killed {kills.job} process(es) of the job for memory"
    elif kills.job is None and kills.machine:
        yield (
            f"the kernel of this machine killed {kills.machine} process(es) for memory while the job ran; nothing here"
            " tells whether they were the job's"
        )
    yield from _of_output(job_log)
    if ended.survivors:
        pids = ", ".join(str(process.pid) for process in ended.survivors)
        yield f"processes {pids} of the job could not be killed"
    for entry in settled.journal:
        if (remark := _OF_BLOCKS.get(entry.event)) is not None:
            yield f"{entry.fields.get('table')}: {remark}"
    for write in settled.writes or ():
        if write.undo_refused is not None:
            yield f"{write.table}: the commit stays, it could not be undone: {write.undo_refused}"
        if write.incomplete is not None:
            yield f"{write.table}: the write is not whole: {write.incomplete}"


def _of_output(job_log: JobLog) -> Iterator[str]:
    if job_log.lines_dropped:
        yield f"{job_log.lines_dropped} lines of output were not logged: too many, or not searchable for secrets"
    if not job_log.is_whole:
        yield "the job's output could not be read to its end: its last lines are missing in the log and in logTail"
