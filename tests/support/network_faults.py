"""Faults of the network and of its clients, as actions of a rule (soal.testing.s3.rules)."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from soal.testing.s3.exchange import ConnectionDropped, Reply, Request

if TYPE_CHECKING:
    from collections.abc import Callable

# A bound, so that a test that never releases a held request still ends.
_HOLD_LIMIT_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class LoseReply:
    """Apply the request, but answer with an error; with `status` None close the connection instead."""

    status: int | None = 503

    def __call__(self, request: Request) -> Reply:
        request.apply()
        if self.status is None:
            raise ConnectionDropped
        return Reply.error(self.status, "the reply was lost by a rule")


@dataclass(frozen=True, slots=True)
class Freeze:
    """Stop the client by `stop`, then apply the request: the answer waits unread in a socket."""

    stop: Callable[[], None]

    def __call__(self, request: Request) -> Reply:
        request.body()
        self.stop()
        return request.apply()


@dataclass(slots=True)
class Late:
    """Read the whole request, but apply it only on `release()`, as if it were still in the network.

    `then` is what the client sees immediately: "dropped" (closed connection, for a client that `end` has killed), a
    status, or "waits" (nothing until the release).
    """

    then: Literal["dropped", "waits"] | int = "dropped"
    end: Callable[[], None] | None = None
    _held: list[Request] = field(default_factory=list)
    _released: threading.Event = field(default_factory=threading.Event)
    _replies: list[Reply] = field(default_factory=list)

    def __call__(self, request: Request) -> Reply | Callable[[], Reply]:
        request.body()
        self._held.append(request)
        position = len(self._held) - 1
        if self.end is not None:
            self.end()
        if self.then == "dropped":
            raise ConnectionDropped
        if isinstance(self.then, int):
            return Reply.error(self.then, "the request is late by a rule")
        return lambda: self._wait(position)

    def release(self) -> tuple[Reply, ...]:
        """Apply the held requests, in the order of arrival; return S3's answers."""
        self._replies.extend(request.apply() for request in self._held[len(self._replies) :])
        self._released.set()
        return tuple(self._replies)

    def _wait(self, position: int) -> Reply:
        if not self._released.wait(_HOLD_LIMIT_S):
            raise ConnectionDropped
        return self._replies[position]
