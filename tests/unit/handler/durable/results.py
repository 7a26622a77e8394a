"""Results of attempts, as the handler makes them."""

from __future__ import annotations

from handler.durable.attempts import LOST, Attempt
from handler.outcome.result import ErrorResult, Result, WriteResult
from handler.outcome.state import State

__all__ = ["attempt", "lost", "result", "write"]


def write(run_id: str, step: str = "", status: str = "committed", reason: str | None = None) -> WriteResult:
    return WriteResult(
        table="s3://lake/a",
        format="delta",
        step=step,
        status=status,
        version=1,
        rows=1,
        bytes=1,
        reason=reason,
        undo_refused=None,
        checkpoint="s3://checkpoints/1",
        run_id=run_id,
    )


def lost() -> Attempt:
    return Attempt.without_result(LOST, "killed", memory_mb=1769)


def result(state: str, run_id: str, *writes: WriteResult, usage: bool = False, retryable: bool = False) -> Result:
    error = ErrorResult(type="E", message="m", field=None, retryable=retryable, usage=usage)
    update = {
        "state": State(state),
        "run_id": run_id,
        "writes": writes,
        "error": None if state == "SUCCESS" else error,
        "state_details": state,
    }
    return lost().result.model_copy(update=update)


def attempt(state: str, run_id: str, *writes: WriteResult, usage: bool = False, retryable: bool = False) -> Attempt:
    return Attempt.of(result(state, run_id, *writes, usage=usage, retryable=retryable))
