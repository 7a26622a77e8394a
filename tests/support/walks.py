"""The progress of invocations outside of Lambda."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handler.stages.progress import Invocation, Progress, Settled
from safewriter.deadline import Deadline, epoch_ms

if TYPE_CHECKING:
    from safewriter.settle.supervisor import WriteReport

__all__ = ["new_walk", "settled"]


def new_walk(
    deadline: Deadline | None = None, *, memory_mb: int = 3008, cold_start: bool = False, request_id: str = "request-1"
) -> Progress:
    """Return the progress of an invocation that begins now and has a minute, unless a deadline is given."""
    now_ms = epoch_ms()
    deadline = deadline or Deadline(now_ms + 60_000, now_ms)
    return Progress(Invocation(deadline, request_id, "run-1", memory_mb, cold_start, "arn:f"))


def settled(*writes: WriteReport) -> Settled:
    """Return the end of a job that has made these writes."""
    return Settled(ended=None, journal=(), writes=writes, problem="", settle_ms=0)
