"""The network between one process and its object stores, with faults; the stores themselves are not faulty.

Reads and writes of all stores of one process are counted together. A fault can hit the n-th write; before each request
another process can run; and a process can be stopped between two requests and continue later.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar, cast

from safewriter.objects import ListedObject, ObjectStore, PreconditionFailed, StoredObject, StoreError, Upload
from safewriter.objects.store import PAGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_T = TypeVar("_T")


class Killed(BaseException):
    """The process is dead; only the test may catch this."""


class Stopped(BaseException):
    """The process is stopped between two requests; `Network.resumed` continues it."""


class Fault(Enum):
    """The fault of one write, and its effect on the process that sent it."""

    KILL_BEFORE = "killed before it was applied"
    KILL_AFTER = "killed after it was applied"
    KILL_LATE = "killed, and it is applied later"
    REFUSE = "not applied, the process sees an error"
    LOSE_REPLY = "applied, the process sees an error"
    LATE = "applied later, the process sees an error"

    @property
    def kills(self) -> bool:
        return self.name.startswith("KILL")


@dataclass(frozen=True)
class Sent:
    """One request as the process sent it."""

    verb: str
    key: str
    mutates: bool


class Network:
    """The requests of one process. `at` is the number of the write that is hit, from 1; 0: none."""

    def __init__(
        self,
        fault: Fault | None = None,
        at: int = 0,
        *,
        and_all_after: bool = False,
        before: Callable[[int], None] = lambda _: None,
        stop_after: int | None = None,
    ) -> None:
        self._fault = fault
        self._at = at
        self._and_all_after = and_all_after
        self._before = before
        self._stop_after = stop_after
        self._answers: list[tuple[bool, Any]] = []
        self._replayed = 0
        self._late: list[Callable[[], object]] = []
        self.sent: list[Sent] = []
        self.mutations = 0
        self.fired = False

    def store(self, inner: ObjectStore) -> ObjectStore:
        """Return `inner` as this process sees it."""
        return _Store(self, inner)

    def land(self) -> None:
        """Apply the late request, under the conditions it was sent with."""
        while self._late:
            try:
                self._late.pop(0)()
            except PreconditionFailed:
                continue

    def resumed(self, stop_after: int | None = None) -> Network:
        """Return the network of the same process, started again from its beginning.

        What it had sent is not sent again but answered as before, so it goes on exactly where it stood.
        """
        later = Network(self._fault, self._at, before=self._before, stop_after=stop_after)
        later._answers = list(self._answers)
        later._replayed = len(self._answers)
        return later

    def call(self, sent: Sent, apply: Callable[[], _T]) -> _T:
        """Send one request."""
        self.sent.append(sent)
        number = len(self.sent)
        if sent.mutates:
            self.mutations += 1
        if number <= self._replayed:
            failed, answer = self._answers[number - 1]
            if failed:
                raise answer
            return cast("_T", answer)
        if self._stop_after is not None and number > self._stop_after:
            raise Stopped
        self._before(number)
        hit = sent.mutates and (self.mutations == self._at or (self._and_all_after and self.mutations > self._at > 0))
        try:
            answer = self._broken(sent, apply) if hit and self._fault is not None else apply()
        except Exception as error:
            self._answers.append((True, error))
            raise
        self._answers.append((False, answer))
        return answer

    def _broken(self, sent: Sent, apply: Callable[[], _T]) -> _T:
        self.fired = True
        fault = self._fault
        assert fault is not None
        if fault in (Fault.KILL_AFTER, Fault.LOSE_REPLY):
            with contextlib.suppress(PreconditionFailed):  # a refusal is an answer that is lost too
                apply()
        elif fault in (Fault.KILL_LATE, Fault.LATE):
            self._late.append(apply)
        message = f"{sent.verb} {sent.key}: {fault.value}"
        raise Killed(message) if fault.kills else StoreError(message)


class _Store:
    """One store behind a network."""

    def __init__(self, network: Network, inner: ObjectStore) -> None:
        self._network = network
        self._inner = inner

    def get(self, key: str, *, max_bytes: int | None = None) -> StoredObject | None:
        return self._network.call(Sent("get", key, mutates=False), lambda: self._inner.get(key, max_bytes=max_bytes))

    def stream(self, key: str) -> Iterator[bytes] | None:
        blocks = self._network.call(Sent("get", key, mutates=False), lambda: tuple(self._inner.stream(key) or ()))
        return iter(blocks) if blocks else None

    def list(self, prefix: str, *, start_after: str = "", at_once: int = PAGE) -> Iterator[ListedObject]:
        sent = Sent("list", prefix, mutates=False)
        yield from self._network.call(
            sent, lambda: tuple(self._inner.list(prefix, start_after=start_after, at_once=at_once))
        )

    def uploads(self, prefix: str) -> Iterator[Upload]:
        yield from self._network.call(
            Sent("uploads", prefix, mutates=False), lambda: tuple(self._inner.uploads(prefix))
        )

    def create(self, key: str, body: bytes, *, tag: str = "") -> str:
        return self._network.call(Sent("create", key, mutates=True), lambda: self._inner.create(key, body, tag=tag))

    def replace(self, key: str, body: bytes, *, etag: str, tag: str = "") -> str:
        sent = Sent("replace", key, mutates=True)
        return self._network.call(sent, lambda: self._inner.replace(key, body, etag=etag, tag=tag))

    def check_conditions(self, key: str, body: bytes) -> None:
        """It keeps them."""

    def put(self, key: str, body: bytes) -> str:
        return self._network.call(Sent("put", key, mutates=True), lambda: self._inner.put(key, body))

    def delete(self, key: str) -> None:
        self._network.call(Sent("delete", key, mutates=True), lambda: self._inner.delete(key))

    def delete_all(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.delete(key)

    def abort(self, upload: Upload) -> None:
        self._network.call(Sent("abort", upload.key, mutates=True), lambda: self._inner.abort(upload))

    def uri(self, key: str) -> str:
        return self._inner.uri(key)
