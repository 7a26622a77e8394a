"""Finish an invocation: close the run's record, continue the run if allowed, and keep the result on S3."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from handler.outcome.assemble import result_of
from handler.outcome.continuation import has_progressed, next_invocation
from handler.process.bounded_call import OverdueError, within
from handler.runs.store import result_key
from safewriter.objects import StoreError
from safewriter.record.document import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from handler.outcome.result import Result
    from handler.outcome.state import Outcome
    from handler.services import Services
    from handler.stages.progress import Begun, Progress

__all__ = ["record"]


def record(progress: Progress, outcome: Outcome, services: Services) -> Result:
    """Build the result and store it on S3; if that fails, a warning in the result says so."""
    begun = progress.begun
    if begun is None:
        return result_of(progress, outcome)
    schedule = begun.prepared.schedule

    def in_time(act: Callable[[], object]) -> None:
        within(schedule.left_ms(schedule.record_by_ms), act)

    try:
        in_time(lambda: progress.warn(*_end(begun, progress, outcome)))
    except (StoreError, OverdueError) as error:
        progress.warnings.insert(0, f"the run's record still says RUNNING: {error}")
    result = result_of(progress, outcome, continued_by=_continue(begun, progress, outcome, services))
    body = json.dumps(result.document(), ensure_ascii=False).encode()
    try:
        in_time(lambda: begun.runs.store.put(result_key(progress.invocation.run_id), body))
    except (StoreError, OverdueError) as error:
        progress.warnings.insert(0, f"this document is not at resultUri: {error}")  # where no truncation drops it
        result = result_of(progress, outcome, continued_by=result.continued_by)
    return result


def _end(begun: Begun, progress: Progress, outcome: Outcome) -> tuple[str, ...]:
    settled = progress.settled
    is_known = not progress.started or (settled is not None and settled.writes is not None and not settled.problem)
    writes = progress.writes or ()
    has_none = is_known and all(write.status == Status.ROLLED_BACK and write.incomplete is None for write in writes)
    return begun.runs.end(
        begun.run,
        state=outcome.state.value,
        reason=progress.masked(outcome.details),
        may_hold_writes=not has_none,
        turn_completed=progress.turn is not None and progress.turn.has_completed,
    )


def _continue(begun: Begun, progress: Progress, outcome: Outcome, services: Services) -> str | None:
    """Continue the run if that is allowed and useful; return the request id of the new invocation.

    Close the record first: otherwise the next attempt would wait for this one.
    """
    prepared, invocation = begun.prepared, progress.invocation
    continuation = next_invocation(
        outcome.state,
        prepared.requested.event,
        prepared.requested.continuation,
        run_key=prepared.job.run_key,
        continue_max=prepared.settings.continue_max,
        progressed=has_progressed(progress.writes or (), invocation.run_id),
    )
    if isinstance(continuation, str):
        progress.warn(continuation)
    if continuation is None or isinstance(continuation, str):
        return None
    try:
        return within(
            prepared.schedule.left_ms(prepared.schedule.record_by_ms),
            lambda: services.invoke(invocation.function, continuation.payload()),
        )
    except Exception as error:  # noqa: BLE001 - the SDK raises many kinds; the run can be continued by hand
        progress.warn(f"the run could not be continued by the function itself: {error}")
        return None
