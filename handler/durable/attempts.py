"""The attempts of an execution: decide whether another one follows, and combine their results into one document.

Every function here is pure: the durable service replays the execution with the results that it has kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

from pydantic import BaseModel, ConfigDict

from handler.outcome.continuation import is_progress
from handler.outcome.cut import Limits, cut
from handler.outcome.result import AttemptResult, ErrorResult, Memory, Result, Timings, Versions
from handler.outcome.state import State

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FAILURES_MAX", "LOST", "Attempt", "all_told", "pause_s"]

FAILURES_MAX: Final = 3
"""Give up after this many consecutive failed attempts without a commit."""
LOST: Final = "AttemptLost"
_AT_ONCE_S: Final = 1
"""The service's shortest wait."""
_BACKOFF_S: Final = 15
_BUSY_S: Final = (60, 120, 240, 480, 900)
"""The pauses after attempts that found another attempt alive, a turn held, or S3 unavailable; the last one repeats."""
_BUSY_MAX: Final = 100
"""Give up after this many consecutive busy attempts, about a day."""
_ENDS: Final = (State.SUCCESS, State.SKIPPED, State.CANCELLED)
"""No attempt follows these. The handler skips a turn only if nothing of the run has begun."""
_LIMITS: Final = Limits(writes=40, lines=20, text=400)


class Attempt(BaseModel):
    """The content of a step: an attempt's result, truncated to a few KB, with the commit count taken before.

    The service keeps 3,000 operations and 100 MB for an execution; each attempt takes two operations.
    https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    result: Result
    committed: int

    @classmethod
    def of(cls, result: Result) -> Self:
        """Count the commits, then truncate the result."""
        committed = sum(is_progress(write, result.run_id) for write in result.writes)
        return cls(result=cut(result, _LIMITS), committed=committed)

    @classmethod
    def without_result(cls, error: str, details: str, *, memory_mb: int) -> Self:
        """Return an attempt whose result was lost. The next attempt or the sweeper settles its writes."""
        result = Result(
            run_id=None,
            client_token=None,
            attempt=None,
            previous_run_id=None,
            name=None,
            state=State.UNKNOWN,
            state_details=details,
            exit_code=None,
            signal=None,
            error=ErrorResult(type=error, message=details, field=None, retryable=True, usage=False),
            writes=(),
            timings=Timings(total_ms=0, remaining_ms=0),
            cold_start=False,
            memory=Memory(limit_mb=memory_mb, peak_mb=None),
            versions=Versions(soal=None, spark=None, delta=None, iceberg=None),
            warnings=(),
            log_tail=(),
            result_uri=None,
        )
        return cls(result=result, committed=0)

    @property
    def is_busy(self) -> bool:
        """Whether a temporary condition kept the job from starting, such as a live attempt or a held turn."""
        result = self.result
        has_run = result.exit_code is not None or result.signal is not None
        waits = result.state is State.FAILED and result.error is not None and result.error.retryable
        return waits and not has_run


def pause_s(attempts: Sequence[Attempt]) -> int | None:
    """Return the seconds until the next attempt; None if none follows.

    After an attempt that committed a write, the next one follows at once, whatever ended it; after a busy one, after a
    longer pause. Any other attempt is a failure, and the pause doubles with each consecutive failure.
    """
    last = attempts[-1].result
    if last.state in _ENDS or (last.error is not None and last.error.usage):
        return None
    failures = busy = 0
    for attempt in reversed(attempts):
        if attempt.committed:
            break
        failures += not attempt.is_busy
        busy += attempt.is_busy
    if failures >= FAILURES_MAX or busy >= _BUSY_MAX:
        return None
    if attempts[-1].committed:
        return _AT_ONCE_S
    if attempts[-1].is_busy:
        return _BUSY_S[min(busy, len(_BUSY_S)) - 1]
    return _BACKOFF_S << (failures - 1)


def all_told(attempts: Sequence[Attempt]) -> Result:
    """Return the last result with a line for each attempt."""
    lines = tuple(_line(number, attempt) for number, attempt in enumerate(attempts, start=1))
    return attempts[-1].result.model_copy(update={"attempts": lines})


def _line(number: int, attempt: Attempt) -> AttemptResult:
    result = attempt.result
    return AttemptResult(
        number=number,
        run_id=result.run_id,
        state=result.state,
        error=None if result.error is None else result.error.type,
        committed=attempt.committed,
        total_ms=result.timings.total_ms,
        result_uri=result.result_uri,
    )
