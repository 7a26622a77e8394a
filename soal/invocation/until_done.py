"""Invoke a run that is longer than the function's timeout until it has ended.

Another attempt under the same clientToken follows one that reached its deadline after it had committed a write, was
killed, or says "try again later". It skips the committed writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from handler.outcome.state import State

if TYPE_CHECKING:
    from collections.abc import Callable

    from soal.invocation.report import Report

__all__ = ["until_done"]


def until_done(
    invoke: Callable[[Any], Report], event: object, *, attempts_max: int, remark: Callable[[str], None]
) -> Report:
    """Invoke until an attempt is the last one; return its report, or the one after `attempts_max`."""
    report = invoke(event)
    for attempt in range(1, attempts_max):
        why = _goes_on(report)
        if why is None:
            return report
        remark(f"attempt {attempt} {why}; continuing")
        report = invoke(event)
    return report


def _goes_on(report: Report) -> str | None:
    """Return why another attempt is useful; None if it is not."""
    result = report.result
    if result is None:
        return "was killed before it could answer"
    if result.state is State.INCOMPLETE:
        done = sum(write.status == "committed" and write.run_id == result.run_id for write in result.writes)
        return f"reached its deadline after {done} new commits" if done else None
    if result.state is State.FAILED and result.error is not None and result.error.retryable:
        return f"asks for a retry ({result.error.type})"
    return None
