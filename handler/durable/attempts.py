"""The attempts of an execution: whether another one follows, and the document that tells of all.

Nothing here has an effect or depends on anything but its arguments: the durable service calls it again and again, with
the results that it has kept.
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
"""As many attempts in a row without a commit end the execution."""
LOST: Final = "AttemptLost"
_AT_ONCE_S: Final = 1
"""The service's shortest wait."""
_BACKOFF_S: Final = 15
_BUSY_S: Final = (60, 120, 240, 480, 900)
"""The pauses after attempts that found another one alive, a turn held, or S3 away; the last is that of all others."""
_BUSY_MAX: Final = 100
"""As many in a row, about a day."""
_LIMITS: Final = Limits(writes=40, lines=20, text=400)


class Attempt(BaseModel):
    """The content of a step: an attempt's result, cut to some kilobytes, and what was counted before.

    The service keeps 3,000 operations and 100 MB for an execution, and each attempt is two operations.
    https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    result: Result
    committed: int

    @classmethod
    def of(cls, result: Result) -> Self:
        """Count, then cut."""
        committed = sum(is_progress(write, result.run_id) for write in result.writes)
        return cls(result=cut(result, _LIMITS), committed=committed)

    @classmethod
    def without_result(cls, error: str, details: str, *, memory_mb: int) -> Self:
        """Return an attempt of which no result is left. Its writes are the next one's to settle, or the sweeper's."""
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
        """Whether the job could not begin for a reason that passes by itself: another attempt lives, a turn is held."""
        result = self.result
        has_run = result.exit_code is not None or result.signal is not None
        waits = result.state is State.FAILED and result.error is not None and result.error.retryable
        return result.state is State.SKIPPED or (waits and not has_run)


def pause_s(attempts: Sequence[Attempt]) -> int | None:
    """Return the seconds until the next attempt; None if the last one was the last.

    An attempt that has committed a write is followed at once, whatever ended it. One that was busy is followed later.
    Any other is a failure, and the pause doubles with each in a row.
    """
    last = attempts[-1].result
    if last.state in (State.SUCCESS, State.CANCELLED) or (last.error is not None and last.error.usage):
        return None
    if last.state is State.SKIPPED and all(attempt.is_busy for attempt in attempts):
        return None  # the run was to be skipped, and nothing of it has begun
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
    """Return the last result, with a line for each attempt. A run that began and is skipped at its end has failed."""
    lines = tuple(_line(number, attempt) for number, attempt in enumerate(attempts, start=1))
    last = attempts[-1].result
    if last.state is State.SKIPPED and not all(attempt.is_busy for attempt in attempts):
        last = last.model_copy(update={"state": State.FAILED})
    return last.model_copy(update={"attempts": lines})


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
