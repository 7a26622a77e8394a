"""The function's log and metrics, through Powertools: JSON lines with the request id, metrics as lines (EMF)."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit, single_metric

from handler.outcome.encodable import encodable
from handler.redaction.log_records import JOB, MaskingFilter
from handler.redaction.redact import redact

if TYPE_CHECKING:
    from collections.abc import Callable

    from handler.outcome.result import Result
    from handler.runs.record import RunRecord

__all__ = [
    "NAMESPACE",
    "count",
    "count_usage_error",
    "log_job_line",
    "logger",
    "mask_lines",
    "metrics",
    "name_run",
    "print_metric",
]

_SERVICE: Final = os.environ.get("POWERTOOLS_SERVICE_NAME", "soal")
NAMESPACE: Final = os.environ.get("POWERTOOLS_METRICS_NAMESPACE", "SoAL")

# Without the deserialiser a line of the job that happens to be JSON, such as "100", would change its type.
logger: Final = Logger(service=_SERVICE, json_deserializer=str)
metrics: Final = Metrics(namespace=NAMESPACE, service=_SERVICE)
_masking: Final = MaskingFilter(lambda text: encodable(redact(text)))


def mask_lines(masked: Callable[[str], str] = _masking.masked) -> None:
    """From now on, pass all lines that this process logs, also those of SafeWriter and libraries, through `masked`,
    which knows the secrets of the current run. The default only recognises secrets by their form.
    """
    _masking.masked = masked
    for handler in (*logging.getLogger().handlers, *logger.handlers, logging.lastResort):
        if handler is not None:
            handler.addFilter(_masking)  # adds it only once


mask_lines()


def name_run(record: RunRecord, masked: Callable[[str], str]) -> None:
    """Add the run and the attempt to every line logged from now on, also to the job's own. `masked` masks secrets in
    the run key.
    """
    logger.append_keys(run_key=masked(record.run_key), run_id=record.run_id, attempt=record.attempt)


def log_job_line(line: str, tables: tuple[str, ...] = ()) -> None:
    """Log a line that the job has printed, at the level with which Spark's own lines begin. `tables`: the tables that
    the job is writing.
    """
    keys = {"source": JOB, **({"table": ", ".join(tables)} if tables else {})}
    if line.startswith("ERROR "):
        logger.error(line, extra=keys)
    elif line.startswith("WARN "):
        logger.warning(line, extra=keys)
    else:
        logger.info(line, extra=keys)


def print_metric(line: str) -> None:
    """Print a metric of the job: CloudWatch reads a metric only as a separate line."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def count(result: Result) -> None:
    """Turn a result into metrics, and log each of its verdicts on a line that can be searched by table."""
    for write in result.writes:
        report = logger.info if write.status == "committed" else logger.warning
        report(
            f"{write.status}: {write.reason or 'it is in the table'}",
            table=write.table,
            step=write.step,
            status=write.status,
            version=write.version,
            rows=write.rows,
        )
    timings = result.timings
    metrics.add_metric("ColdStart", MetricUnit.Count, int(result.cold_start))
    metrics.add_metric(f"State{_words(result.state.value)}", MetricUnit.Count, 1)
    for status in ("committed", "rolled_back", "unknown"):
        number = sum(write.status == status for write in result.writes)
        metrics.add_metric(f"Verdict{_words(status)}", MetricUnit.Count, number)
    # Earlier attempts have counted the writes that they committed.
    writes = [write for write in result.writes if write.status == "committed" and write.run_id == result.run_id]
    metrics.add_metric("RowsCommitted", MetricUnit.Count, sum(write.rows or 0 for write in writes))
    metrics.add_metric("BytesCommitted", MetricUnit.Bytes, sum(write.bytes or 0 for write in writes))
    metrics.add_metric("UndoRefused", MetricUnit.Count, sum(write.undo_refused is not None for write in result.writes))
    starts = (timings.jvm_start_ms, timings.session_ms)
    for name, value in (
        ("SparkStartMs", None if None in starts else sum(ms or 0 for ms in starts)),
        ("JobMs", timings.job_ms),
        ("SettleMs", timings.settle_ms),
        ("TotalMs", timings.total_ms),
        ("RemainingMs", timings.remaining_ms),
    ):
        if value is not None:
            metrics.add_metric(name, MetricUnit.Milliseconds, value)
    if result.memory.peak_mb is not None:
        metrics.add_metric("PeakMb", MetricUnit.Megabytes, result.memory.peak_mb)
    metrics.add_metadata("runId", result.run_id)


def count_usage_error(result: Result, *, version: str, began_ms: int) -> None:
    """Count a run that failed for a caller's mistake, by the function's version: Lambda counts it among the version's
    errors, but it must not roll a deployment back. The timestamp is the invocation's start, as in Lambda's own metric.
    """
    if result.error is None or not result.error.usage:
        return
    with single_metric(name="UsageErrors", unit=MetricUnit.Count, value=1, namespace=NAMESPACE) as metric:
        metric.add_dimension(name="service", value=_SERVICE)
        metric.add_dimension(name="version", value=version)
        metric.set_timestamp(began_ms)


def _words(text: str) -> str:
    return "".join(word.capitalize() for word in text.split("_"))
