"""What is known of an invocation so far, gathered stage by stage, so that every path can answer with all there is."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

from handler.outcome.outcome import State
from handler.outcome.response import ErrorResult, Memory, Result, Timings, Versions, WriteResult
from handler.redaction.redact import Redactor
from handler.spark.classpath import jars
from handler.spark.command import pyspark_home

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from handler.outcome.continuation import Continuation
    from handler.outcome.outcome import Outcome
    from handler.process.child import Ended
    from handler.process.log import Output
    from handler.request.job import Job
    from handler.runs.records import OpenRun
    from handler.settings import HandlerSettings
    from safewriter.deadline import Deadline
    from safewriter.record.journal import Entry
    from safewriter.settle.supervisor import WriteReport

__all__ = ["Facts", "result_of"]

_JAR_VERSION: Final = re.compile(r"(delta-spark|iceberg-spark-runtime)[-_][0-9._]*-([0-9][^/]*)\.jar")


@dataclass(slots=True)
class Facts:
    """Filled in by the stages in their order; what a stage has not reached stays as it is here.

    `function`: the function's own name or ARN, as it was invoked.
    """

    deadline: Deadline
    request_id: str
    run_id: str
    memory_mb: int
    cold_start: bool
    function: str = ""
    redactor: Redactor = field(default_factory=Redactor)
    settings: HandlerSettings | None = None
    job: Job | None = None
    run: OpenRun | None = None
    started: bool = False
    ended: Ended | None = None
    journal: tuple[Entry, ...] = ()
    writes: tuple[WriteReport, ...] | None = None
    output: Output | None = None
    spent_ms: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    event: object = None
    continuation: Continuation | None = None
    continued_by: str | None = None

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Measure a stage, also one that fails."""
        before = time.monotonic_ns()
        try:
            yield
        finally:
            self.spent_ms[name] = (time.monotonic_ns() - before) // 1_000_000

    def retry(self) -> str:
        """Say how the same run is tried again."""
        if self.job is not None and self.job.client_token is not None:
            return f"invoking again with clientToken {self.job.client_token!r}"
        return "a retry by Lambda of this event (or, with a clientToken in the event, invoking it again)"


def result_of(facts: Facts, outcome: Outcome) -> Result:
    """Put the document together; texts in it are without secrets."""
    redact = facts.redactor
    record = None if facts.run is None else facts.run.record
    fault = outcome.fault
    return Result(
        run_id=None if record is None else record.run_id,
        client_token=None if facts.job is None else facts.job.client_token,
        attempt=None if record is None else record.attempt,
        previous_run_id=None if record is None else record.previous_run_id,
        name=None if facts.job is None else facts.job.name,
        state=outcome.state,
        state_details=redact(outcome.details),
        exit_code=outcome.exit_code,
        signal=outcome.signal,
        error=None
        if fault is None
        else ErrorResult(
            type=fault.type,
            message=redact(fault.message),
            field=fault.field,
            retryable=fault.retryable,
            usage=fault.usage,
        ),
        writes=tuple(_write(write, redact) for write in facts.writes or ()),
        timings=_timings(facts),
        cold_start=facts.cold_start,
        memory=Memory(limit_mb=facts.memory_mb, peak_mb=None if facts.ended is None else facts.ended.peak_mb),
        versions=_versions(facts.settings),
        warnings=tuple(redact(warning) for warning in (*facts.warnings, *_ignored(facts.journal))),
        log_tail=() if facts.output is None else facts.output.tail(),
        result_uri=None if record is None else record.result_uri,
        resume_token=facts.job.run_key if facts.job is not None and outcome.state is State.INCOMPLETE else None,
        continued_by=facts.continued_by,
    )


def _write(report: WriteReport, redact: Redactor) -> WriteResult:
    return WriteResult(
        table=report.table,
        format=report.format,
        step=report.step,
        status=report.status,
        version=report.version,
        rows=report.rows,
        bytes=report.bytes,
        reason=None if report.reason is None else redact(report.reason),
        undo_refused=None if report.undo_refused is None else redact(report.undo_refused),
        checkpoint=report.checkpoint,
        run_id=report.run_id,
    )


def _ignored(journal: Iterable[Entry]) -> Iterator[str]:
    """Tell which settings of the script's own had no effect, those with one reason in one line."""
    keys: dict[str, list[str]] = {}
    for entry in journal:
        if entry.event == "setting_ignored":
            keys.setdefault(str(entry.fields["why"]), []).append(str(entry.fields["key"]))
    for why, names in keys.items():
        yield f"the script sets {', '.join(names)}, which was ignored: {why}"


def _timings(facts: Facts) -> Timings:
    times = {entry.event: entry.at_ms for entry in reversed(facts.journal)}  # the first of each
    python_ms, session_ms = times.get("python_started"), times.get("session_ready")
    ended = facts.ended
    begun_ms = session_ms if session_ms is not None else python_ms
    return Timings(
        script_download_ms=facts.spent_ms.get("script_download_ms"),
        jvm_start_ms=None if ended is None or python_ms is None else python_ms - ended.started_ms,
        session_ms=None if session_ms is None or python_ms is None else session_ms - python_ms,
        job_ms=None if ended is None or begun_ms is None else ended.ended_ms - begun_ms,
        settle_ms=facts.spent_ms.get("settle_ms"),
        total_ms=facts.deadline.clock() - facts.deadline.started_ms,
        remaining_ms=facts.deadline.remaining_ms(),
    )


def _versions(settings: HandlerSettings | None) -> Versions:
    found: dict[str, str] = {}
    if settings is not None:
        for jar in jars(pyspark_home(), settings.soal_home):
            if match := _JAR_VERSION.fullmatch(jar.name):
                found[match[1]] = match[2]
    return Versions(
        soal=_installed("soal"),
        spark=_installed("pyspark"),
        delta=found.get("delta-spark"),
        iceberg=found.get("iceberg-spark-runtime"),
    )


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
