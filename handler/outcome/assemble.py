"""Build the result document of an invocation, whatever stage it reached."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

from handler.outcome.continuation import has_progressed
from handler.outcome.encodable import encodable
from handler.outcome.result import ErrorResult, Memory, Result, Timings, Versions, WriteResult
from handler.outcome.state import State
from handler.spark.classpath import jars
from handler.spark.installation import pyspark_home
from safewriter.deadline import epoch_ms
from safewriter.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from handler.outcome.state import Outcome
    from handler.settings import HandlerSettings
    from handler.stages.progress import Progress
    from safewriter.record.journal import Entry
    from safewriter.settle.supervisor import WriteReport

__all__ = ["result_of"]

_JAR_VERSION: Final = re.compile(r"(delta-spark|iceberg-spark-runtime)[-_][0-9._]*-([0-9][^/]*)\.jar")


def result_of(progress: Progress, outcome: Outcome, *, continued_by: str | None = None) -> Result:
    """Build the document; secrets in its texts are masked."""
    masked = progress.masked
    record = None if progress.begun is None else progress.begun.run.record
    job = progress.job
    ended = None if progress.settled is None else progress.settled.ended
    journal = () if progress.settled is None else progress.settled.journal
    fault = outcome.fault
    return Result(
        run_id=None if record is None else record.run_id,
        client_token=None if job is None else job.client_token,
        attempt=None if record is None else record.attempt,
        previous_run_id=None if record is None else record.previous_run_id,
        name=None if job is None or job.name is None else masked(job.name),
        entry_point=None if job is None else masked(str(job.entry_point)),
        state=outcome.state,
        state_details=masked(outcome.details),
        exit_code=outcome.exit_code,
        signal=outcome.signal,
        error=None
        if fault is None
        else ErrorResult(
            type=masked(fault.type),
            message=masked(fault.message),
            field=None if fault.field is None else masked(fault.field),
            retryable=fault.retryable,
            usage=fault.usage,
        ),
        writes=tuple(_write(write, masked) for write in progress.writes or ()),
        timings=_timings(progress, journal),
        cold_start=progress.invocation.cold_start,
        warm_start=ended is not None and ended.reused,
        memory=Memory(limit_mb=progress.invocation.memory_mb, peak_mb=None if ended is None else ended.peak_mb),
        versions=_versions(progress.settings),
        warnings=tuple(masked(warning) for warning in (*progress.warnings, *_ignored(journal))),
        log_tail=() if progress.job_log is None else progress.job_log.tail(),
        result_uri=None if record is None else record.result_uri,
        resume_token=job.run_key if job is not None and outcome.state is State.INCOMPLETE else None,
        progressed=record is not None and has_progressed(progress.writes or (), record.run_id),
        continued_by=continued_by,
    )


def _write(report: WriteReport, masked: Callable[[str], str]) -> WriteResult:
    return WriteResult(
        table=masked(report.table),
        format=report.format,
        step=None if report.step is None else masked(report.step),
        status=report.status,
        version=report.version,
        rows=report.rows,
        bytes=report.bytes,
        reason=None if report.reason is None else masked(report.reason),
        undo_refused=None if report.undo_refused is None else masked(report.undo_refused),
        incomplete=None if report.incomplete is None else masked(report.incomplete),
        checkpoint=encodable(report.checkpoint),
        run_id=None if report.run_id is None else masked(report.run_id),
    )


def _ignored(journal: Iterable[Entry]) -> Iterator[str]:
    """Yield a line for each reason for which the script's own settings had no effect, with their names."""
    keys: dict[str, list[str]] = {}
    for entry in journal:
        if entry.event == "setting_ignored":
            keys.setdefault(str(entry.fields["why"]), []).append(str(entry.fields["key"]))
    for why, names in keys.items():
        yield f"the script sets {', '.join(names)}, which was ignored: {why}"


def _timings(progress: Progress, journal: tuple[Entry, ...]) -> Timings:
    times = {entry.event: entry.at_ms for entry in reversed(journal)}  # the first of each
    python_ms, session_ms = times.get("python_started"), times.get("session_ready")
    ended = None if progress.settled is None else progress.settled.ended
    begun_ms = session_ms if session_ms is not None else python_ms
    deadline = progress.invocation.deadline
    return Timings(
        script_download_ms=progress.download_ms,
        jvm_start_ms=None if ended is None or python_ms is None else python_ms - ended.started_ms,
        session_ms=None if session_ms is None or python_ms is None else session_ms - python_ms,
        job_ms=None if ended is None or begun_ms is None else ended.ended_ms - begun_ms,
        settle_ms=None if progress.settled is None else progress.settled.settle_ms,
        total_ms=epoch_ms() - deadline.started_ms,
        remaining_ms=deadline.remaining_ms(),
    )


def _versions(settings: HandlerSettings | None) -> Versions:
    versions: dict[str, str] = {}
    if settings is not None:
        for jar in jars(pyspark_home(), settings.soal_home):
            if match := _JAR_VERSION.fullmatch(jar.name):
                versions[match[1]] = match[2]
    return Versions(
        soal=VERSION,
        spark=_installed("pyspark"),
        delta=versions.get("delta-spark"),
        iceberg=versions.get("iceberg-spark-runtime"),
    )


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
