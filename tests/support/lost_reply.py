"""A write of a lock's record whose reply is lost."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from safewriter.coordination.backend import RecordChanged
from safewriter.objects.s3 import PAUSES_S
from safewriter.objects.store import StoreError
from soal.testing.s3 import Reply, Request
from soal.testing.s3.exchange import ConnectionDropped

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.coordination.backend import Backend

__all__ = ["LostReply"]

_T = TypeVar("_T")
_WRITES: Final = frozenset({"PutObject", "PutItem"})
_TRIES: Final = len(PAUSES_S) + 1
"""The number of requests that a backend sends in one call while none is answered."""


class LostReply:
    """Apply the next write, call `meanwhile`, then lose the reply.

    `outage`: how many calls of the backend fail from then on, including this one; with 0 it can read the result back.
    """

    def __init__(self, meanwhile: Callable[[], object] = lambda: None, *, outage: int = 0) -> None:
        self._meanwhile, self._left = meanwhile, outage * _TRIES
        self._guard = threading.Lock()
        self.has_begun = False

    def is_next(self, *, is_write: bool) -> bool:
        """Return whether this request is the one whose reply is lost."""
        with self._guard:
            begins = is_write and not self.has_begun
            self.has_begun |= begins
            return begins

    def fails(self) -> bool:
        """Return whether the outage hits this request."""
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
        """Lose the answer to a write that a backend has carried out."""
        self._meanwhile()
        raise StoreError("no answer")

    def meet_outage(self) -> None:
        """Fail one call of a backend while the outage lasts."""
        if sum(self.fails() for _ in range(_TRIES)) > 0:
            raise StoreError("an outage")

    def around(self, backend: Backend, verb: str, request: Callable[[], _T]) -> _T:
        """Apply the fault to a backend without a wire."""
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
