"""Which blocks this process has: one may be open on a Spark session, and a name may be used once in a run."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

from safewriter.errors import BlockOpenError, StepError

if TYPE_CHECKING:
    from safewriter.identity import Write

__all__ = ["Registry"]


class Registry:
    """The blocks of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: weakref.WeakSet[Any] = weakref.WeakSet()
        self._used: set[str] = set()

    def open(self, session: object, write: Write) -> None:
        """Register a block; raises `BlockOpenError` or `StepError`. A stream may write a batch of its own again."""
        with self._lock:
            if session in self._sessions:
                raise BlockOpenError("another SafeWriter block is open on this Spark session; end it first")
            if write.key in self._used and not write.run.is_stream:
                raise StepError(
                    f"this run has written {write.table} (step {write.step!r}) before. Give each block on one table a"
                    " step of its own that is the same on a retry, such as step='2026-11'"
                )
            self._sessions.add(session)
            self._used.add(write.key)

    def close(self, session: object, write: Write, *, landed: bool) -> None:
        """End a block; one that left nothing in the table may be tried again under its name."""
        with self._lock:
            self._sessions.discard(session)
            if not landed:
                self._used.discard(write.key)
