"""A write of a lock's record whose reply is lost on its way."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from safewriter.coordination.backend import RecordChanged
from safewriter.objects.s3 import PAUSES_S
from safewriter.objects.store import StoreError
from scripts.emulator import Reply, Request
from scripts.emulator.exchange import ConnectionDropped

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.coordination.backend import Backend

__all__ = ["LostReply"]

_T = TypeVar("_T")
_WRITES: Final = frozenset({"PutObject", "PutItem"})
_TRIES: Final = len(PAUSES_S) + 1
"""Requests in one call of a backend that is not answered."""


class LostReply:
    """The next write is applied, then `meanwhile` happens, then its reply is lost.

    `outage`: so many calls of the backend fail then, this one as the first; with 0 it may read back what became of it.
    """

    def __init__(self, meanwhile: Callable[[], object] = lambda: None, *, outage: int = 0) -> None:
        self._meanwhile, self._left = meanwhile, outage * _TRIES
        self._guard = threading.Lock()
        self.has_begun = False

    def is_next(self, *, is_write: bool) -> bool:
        """Tell whether this request is the one whose reply is lost."""
        with self._guard:
            begins = is_write and not self.has_begun
            self.has_begun |= begins
            return begins

    def fails(self) -> bool:
        """Tell whether this request meets the outage."""
        with self._guard:
            fails = self.has_begun and self._left > 0
            self._left -= fails
            return fails

    def __call__(self, request: Request) -> Reply:
        if self.fails():
            return Reply.error(503, "an outage")
        if not self.is_next(is_write=request.operation in _WRITES):
            return request.apply()
        request.apply()
        self._meanwhile()
        raise ConnectionDropped

    def lose_answer(self) -> NoReturn:
        """Do the same to a write that a backend has carried out."""
        self._meanwhile()
        raise StoreError("no answer")

    def meet_outage(self) -> None:
        """Let one call of a backend meet the outage, if it lasts."""
        if sum(self.fails() for _ in range(_TRIES)) > 0:
            raise StoreError("an outage")

    def around(self, backend: Backend, verb: str, request: Callable[[], _T]) -> _T:
        """Do the same where there is no wire."""
        if not self.is_next(is_write=verb == "write"):
            return self._answer(request)
        written: Any = request()
        self._meanwhile()
        found = self._answer(lambda: backend.read(written.record.lock))
        if found is None or found.version != written.version:
            raise RecordChanged
        return written  # type: ignore[no-any-return]

    def _answer(self, request: Callable[[], _T]) -> _T:
        self.meet_outage()
        return request()
