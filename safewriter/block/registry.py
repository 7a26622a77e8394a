"""The open blocks of this process: at most one on each Spark session, and one of each name."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

from safewriter.errors import BlockOpenError

if TYPE_CHECKING:
    from safewriter.identity import Write

__all__ = ["Registry"]


class Registry:
    """The open blocks of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: weakref.WeakSet[Any] = weakref.WeakSet()
        self._names: set[str] = set()

    def open(self, session: object, write: Write) -> None:
        """Register a block; raises `BlockOpenError` or `StepError`."""
        with self._lock:
            if session in self._sessions:
                raise BlockOpenError("another SafeWriter block is open on this Spark session; end it first")
            if write.key in self._names:
                raise write.step_error
            self._sessions.add(session)
            self._names.add(write.key)

    def close(self, session: object, write: Write) -> None:
        """Remove a block."""
        with self._lock:
            self._sessions.discard(session)
            self._names.discard(write.key)
