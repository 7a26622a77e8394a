"""The outcome of an invocation: the job's result, or why there is none.

`until_done` repeats a run that is longer than the function's timeout. It invokes again, with the same clientToken,
after an attempt that reached its deadline with new commits, was killed, or failed with a retryable error. The next
attempt skips the committed writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import typer
from pydantic import ValidationError
from rich.text import Text

from handler.outcome.result import Result, exit_status
from handler.outcome.state import State
from safewriter.parsing import parsed
from soal.console.problem import EXIT_DEADLINE, EXIT_FAILED, EXIT_OK, Problem
from soal.console.view import View, columns, number, styled
from soal.invocation.event import check_repeatable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import RenderableType
    from rich.table import Table

    from handler.outcome.result import AttemptResult
    from soal.console.output import Output
    from soal.remote.answer import Answer

_TIMINGS: Final = (
    ("script", "script_download_ms"),
    ("Java", "jvm_start_ms"),
    ("session", "session_ms"),
    ("job", "job_ms"),
    ("settle", "settle_ms"),
    ("total", "total_ms"),
    ("left", "remaining_ms"),
)


_NUMBER_MAX: Final = 2**63


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of an invocation: the result document, or a problem as Lambda or its emulator words it.

    `cpu_s`: CPU seconds of the function's processes, including the init phase; 0 if unknown.
    """

    result: Result | None
    problem: str | None
    exit_code: int
    duration_ms: int
    cpu_s: float = 0.0


def report_of(answer: Answer, timeout_s: int | None) -> Report:
    """Return the report on a function's answer. `timeout_s` may be unknown."""
    if answer.timed_out:
        limit = "" if timeout_s is None else f" of {timeout_s} s"
        problem = (
            f"the function was killed at its timeout{limit} before the handler had answered; the next"
            " invocation with the same clientToken settles its open writes"
        )
        return Report(None, problem, EXIT_DEADLINE, answer.duration_ms)
    error = answer.error
    try:
        payload = parsed(error.message) if error is not None and error.type == "JobFailed" else answer.payload
        result = None if error is not None and error.type != "JobFailed" else Result.model_validate(payload)
        # Check the parsed result, because parsing turns a string of digits into a number.
        if result is not None and not _has_small_numbers(result.document()):
            raise ValueError("a number of the document has more than 64 bits")  # noqa: TRY301 - handled like other faults
    except (ValueError, ValidationError):
        result = None
    if result is None:
        text = str(answer.payload)[:2000] if error is None else f"{error.type}: {error.message}"
        return Report(None, f"the function did not answer with a result: {text}", EXIT_FAILED, answer.duration_ms)
    return Report(result, None, exit_status(result), answer.duration_ms)


def _has_small_numbers(value: object) -> bool:
    """Return whether each integer of a document fits 64 bits; Python's integers are unbounded."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict | list):
            stack.extend(item.values() if isinstance(item, dict) else item)
        elif isinstance(item, int) and not -_NUMBER_MAX <= item < _NUMBER_MAX:
            return False
    return True


def conclude(out: Output, report: Report, *, todo: str, has_shown_log: bool = False) -> None:
    """Show the result, and exit with its exit code. Raises `Problem` if there is no result.

    `has_shown_log`: a person has seen the job's last lines already.
    """
    if report.result is None:
        raise Problem(str(report.problem), todo=todo, exit_code=report.exit_code)
    out.show(result_view(report.result, with_tail=not has_shown_log))
    if report.exit_code != EXIT_OK:
        raise typer.Exit(report.exit_code)


def _attempts(attempts: tuple[AttemptResult, ...]) -> Table:
    table = columns("attempt", "state", "commits", "seconds", "error", right=("attempt", "commits", "seconds"))
    for item in attempts:
        seconds = f"{item.total_ms / 1000:.1f}" if item.total_ms else ""
        table.add_row(str(item.number), styled(item.state.value), str(item.committed), seconds, Text(item.error or ""))
    return table


def result_view(result: Result, *, with_tail: bool = True) -> View:
    """Show the state, the tables' verdicts, the times, and of a job that has not succeeded the last lines."""
    return View(result.document(), tuple(_lines(result, with_tail=with_tail)))


def _lines(result: Result, *, with_tail: bool) -> Iterator[RenderableType]:
    yield Text.assemble(styled(result.state.value), "  ", result.state_details)
    if len(result.attempts) > 1:
        yield _attempts(result.attempts)
    if result.writes:
        numbers = ("version", "rows", "bytes")
        table = columns("write", "step", "verdict", *numbers, "reason", right=numbers)
        for write in result.writes:
            cells = map(number, (write.version, write.rows, write.bytes))
            reason = _untold(write.undo_refused or write.reason or "", result.state_details)
            table.add_row(Text(write.table), Text(write.step or ""), styled(write.status), *cells, Text(reason))
        yield table
    timings = [(name, getattr(result.timings, field)) for name, field in _TIMINGS]
    times = ", ".join(f"{name} {value / 1000:.1f} s" for name, value in timings if value is not None)
    memory = result.memory
    peak = "" if memory.peak_mb is None else f"; memory {memory.peak_mb} of {memory.limit_mb} MB"
    yield Text(times + peak, style="dim")
    for warning in result.warnings:
        yield Text.assemble(("warning: ", "yellow"), warning)
    if with_tail and result.state != "SUCCESS" and result.log_tail:
        yield Text("the last lines of the job:", style="dim")
        yield from (Text(f"  {line}", style="dim") for line in result.log_tail)
    if result.result_uri is not None:
        yield Text(f"kept at {result.result_uri}", style="dim")


def _untold(reason: str, told: str) -> str:
    """Return a reason without the error in brackets at its end if that has been told."""
    head, _, error = reason.removesuffix(")").partition(" (")
    return head if error and error in told else reason


def until_done(
    invoke: Callable[[Any], Report], event: object, *, attempts_max: int, remark: Callable[[str], None]
) -> Report:
    """Invoke until no further attempt is useful, or `attempts_max` times; return the last report. Raises `Problem`,
    before the first attempt, for an event that names no run.
    """
    check_repeatable(event)
    report = invoke(event)
    for attempt in range(1, attempts_max):
        reason = _goes_on(report)
        if reason is None:
            return report
        remark(f"attempt {attempt} {reason}; continuing")
        report = invoke(event)
    return report


def _goes_on(report: Report) -> str | None:
    """Return why another attempt is useful, or None."""
    result = report.result
    if result is None:
        return "ended without a result"
    if result.state is State.INCOMPLETE:
        commits = sum(write.status == "committed" and write.run_id == result.run_id for write in result.writes)
        return f"reached its deadline after {commits} new commits" if commits else None
    if result.state is State.FAILED and result.error is not None and result.error.retryable:
        return f"asks for a retry ({result.error.type})"
    return None
