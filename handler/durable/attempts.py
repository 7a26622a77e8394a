"""The attempts of an execution: whether another one follows, and the document that tells of all.

Nothing here has an effect or depends on anything but its arguments: the durable service calls it again and again, with
the results that it has kept.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from handler.outcome.result import AttemptResult, ErrorResult, Memory, Result, Timings, Versions
from handler.outcome.state import State

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FAILURES_MAX", "all_told", "kept", "lost", "pause_s"]

FAILURES_MAX: Final = 3
"""As many attempts in a row without a commit end the execution."""
_AT_ONCE_S: Final = 1
"""The service's shortest wait."""
_BACKOFF_S: Final = 15
_ENDS: Final = (State.SUCCESS, State.SKIPPED, State.CANCELLED)
_KEPT_MAX_BYTES: Final = 200_000
"""Of a document: the service keeps 256 KB of a step's result, and as much of an execution's.
https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
"""
_WRITES_MAX: Final = 200


def pause_s(results: Sequence[Result]) -> int | None:
    """Return the seconds until the next attempt; None if the last one was the last.

    An attempt that has committed a write is followed at once, whatever ended it. One that has not is a failure, and the
    pause doubles with each in a row.
    """
    last = results[-1]
    if last.state in _ENDS or (last.error is not None and last.error.usage):
        return None
    failures = 0
    for result in reversed(results):
        if _committed(result):
            break
        failures += 1
    if failures == 0:
        return _AT_ONCE_S
    return None if failures >= FAILURES_MAX else _BACKOFF_S * 2 ** (failures - 1)


def lost(memory_mb: int) -> Result:
    """Return the result of an attempt that was killed before it could answer. Its writes are the next one's to settle,
    or the sweeper's.
    """
    details = "the invocation was killed before the handler could answer; the next attempt settles its open writes"
    return Result(
        run_id=None,
        client_token=None,
        attempt=None,
        previous_run_id=None,
        name=None,
        state=State.UNKNOWN,
        state_details=details,
        exit_code=None,
        signal=None,
        error=ErrorResult(type="AttemptLost", message=details, field=None, retryable=True, usage=False),
        writes=(),
        timings=Timings(total_ms=0, remaining_ms=0),
        cold_start=False,
        memory=Memory(limit_mb=memory_mb, peak_mb=None),
        versions=Versions(soal=None, spark=None, delta=None, iceberg=None),
        warnings=(),
        log_tail=(),
        result_uri=None,
    )


def kept(result: Result) -> Result:
    """Return what the service keeps of a result: all of it, unless it is too long."""
    if _size(result) <= _KEPT_MAX_BYTES:
        return result
    short = result.model_copy(update={"log_tail": (), "writes": result.writes[-_WRITES_MAX:]})
    left_out = len(result.writes) - len(short.writes)
    warning = f"the log's tail and {left_out} writes are left out here; the document at resultUri has all"
    return short.model_copy(update={"warnings": (*result.warnings[:_WRITES_MAX], warning)})


def all_told(results: Sequence[Result]) -> Result:
    """Return the last result, with a line for each attempt."""
    attempts = tuple(_attempt(number, result) for number, result in enumerate(results, start=1))
    return results[-1].model_copy(update={"attempts": attempts})


def _attempt(number: int, result: Result) -> AttemptResult:
    return AttemptResult(
        number=number,
        run_id=result.run_id,
        state=result.state,
        state_details=result.state_details,
        error=None if result.error is None else result.error.type,
        committed=_committed(result),
        total_ms=result.timings.total_ms,
        result_uri=result.result_uri,
    )


def _committed(result: Result) -> int:
    return sum(write.status == "committed" and write.run_id == result.run_id for write in result.writes)


def _size(result: Result) -> int:
    return len(json.dumps(result.document()).encode())
