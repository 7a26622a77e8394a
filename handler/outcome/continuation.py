"""Continue a run that takes longer than the function's timeout: invoke the function again after an INCOMPLETE attempt.

The function invokes itself asynchronously with the same event and run key, so that the next attempt skips the committed
writes. It does so only if the owner allows it, at most `SOAL_CONTINUE_MAX` times for a run, and only after an attempt
that committed a write: otherwise the run would make no progress.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from handler.outcome.state import State
from handler.request.continuation import Continuation
from safewriter.record.document import NO_CHANGE, Status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from safewriter.settle.supervisor import WriteReport

__all__ = ["has_progressed", "is_progress", "next_invocation"]

_PAYLOAD_MAX_BYTES: Final = 256 * 1024  # of an asynchronous invocation


class _Write(Protocol):
    """The common fields of a write's report and result."""

    @property
    def status(self) -> str: ...

    @property
    def run_id(self) -> str | None: ...

    @property
    def reason(self) -> str | None: ...


def is_progress(write: _Write, run_id: str | None) -> bool:
    """Return whether the attempt `run_id` committed the write. A write without a change does not count: every attempt
    repeats it.
    """
    return write.status == Status.COMMITTED and write.run_id == run_id and write.reason != NO_CHANGE


def has_progressed(writes: Iterable[WriteReport], run_id: str) -> bool:
    """Return whether the attempt `run_id` itself committed a write."""
    return any(is_progress(write, run_id) for write in writes)


def next_invocation(
    state: State, event: object, before: Continuation | None, *, run_key: str, continue_max: int, progressed: bool
) -> Continuation | str | None:
    """Return the invocation that continues the run, or a sentence why none does; None if the run needs none, or the
    owner allows none.
    """
    if state is not State.INCOMPLETE or continue_max == 0:
        return None
    count = 1 if before is None else before.count + 1
    if not progressed:
        return "the run is not continued: this attempt has committed nothing; give it more time, or smaller steps"
    if count > continue_max:
        return f"the run is not continued: it was {continue_max} times (SOAL_CONTINUE_MAX)"
    continuation = Continuation(count, run_key, event)
    if len(continuation.payload()) > _PAYLOAD_MAX_BYTES:
        return "the run is not continued: its event is too large for an asynchronous invocation"
    return continuation
