"""Results of attempts, as the handler makes them."""

from __future__ import annotations

from handler.durable.attempts import lost
from handler.outcome.result import ErrorResult, Result, WriteResult
from handler.outcome.state import State

__all__ = ["result", "write"]


def write(run_id: str, step: str = "", status: str = "committed") -> WriteResult:
    return WriteResult(
        table="s3://lake/a",
        format="delta",
        step=step,
        status=status,
        version=1,
        rows=1,
        bytes=1,
        reason=None,
        undo_refused=None,
        checkpoint="s3://checkpoints/1",
        run_id=run_id,
    )


def result(state: str, run_id: str, *writes: WriteResult, usage: bool = False) -> Result:
    error = None if state == "SUCCESS" else ErrorResult(type="E", message="m", field=None, retryable=False, usage=usage)
    update = {"state": State(state), "run_id": run_id, "writes": writes, "error": error, "state_details": state}
    return lost(1769).model_copy(update=update)
