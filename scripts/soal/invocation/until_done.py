"""A run that is longer than the function's timeout: invoked again and again until it has come to its end.

An attempt that ran into its deadline after it had committed something, that was killed, or that says "try
again later" is followed by another one under the same clientToken, which skips what is committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from handler.outcome.outcome import State

if TYPE_CHECKING:
    from collections.abc import Callable

    from scripts.soal.invocation.report import Report

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
        remark(f"attempt {attempt} {why}; going on")
        report = invoke(event)
    return report


def _goes_on(report: Report) -> str | None:
    """Say why another attempt is worth it; None if it is not."""
    result = report.result
    if result is None:
        return "was killed before it could answer"
    if result.state is State.INCOMPLETE:
        done = sum(write.status == "committed" and write.run_id == result.run_id for write in result.writes)
        return f"ran into its deadline after {done} new commits" if done else None
    if result.state is State.FAILED and result.error is not None and result.error.retryable:
        return f"asks to be tried again ({result.error.type})"
    return None
