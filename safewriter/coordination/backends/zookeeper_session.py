"""A session with a ZooKeeper ensemble, by kazoo. It begins at the first request; each wait for an answer is bounded."""

from __future__ import annotations

import inspect
import math
import threading
import weakref
from typing import TYPE_CHECKING, Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, KazooException, NoAuthError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import Connect
from kazoo.protocol.states import KazooState

from safewriter.coordination.backend import Connection
from safewriter.objects.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Session"]

_ANSWER_MIN_S: Final = 2.0
_ANSWERS_IN_A_LEASE: Final = 3
_GREETINGS_IN_A_LEASE: Final = 12
# By default kazoo's pauses between connection attempts grow to an hour; a session is lost long before.
_RECONNECT: Final = {"max_tries": -1, "delay": 0.1, "max_delay": 1.0}
_CONNECTIONS: Final = {
    KazooState.CONNECTED: Connection.CONNECTED,
    KazooState.SUSPENDED: Connection.SUSPENDED,
    KazooState.LOST: Connection.LOST,
}


class Session:
    """A session that the ensemble ends `timeout_s` seconds after the last message from this process."""

    def __init__(self, hosts: str, timeout_s: float) -> None:
        self._client = KazooClient(hosts, timeout=math.ceil(timeout_s * 1000) / 1000, connection_retry=_RECONNECT)
        self._connection = self._client._connection = _Connection(self._client, self._client._conn_retry.copy())  # noqa: SLF001 - kazoo exposes the granted timeout nowhere else
        self._answer_s = max(_ANSWER_MIN_S, timeout_s / _ANSWERS_IN_A_LEASE)
        self._starting = threading.Lock()
        self._connected: threading.Event | None = None
        self._listeners: list[Callable[[], Callable[[Connection], None] | None]] = []
        self._client.add_listener(self._on_state)

    def granted_s(self) -> float:
        """Return the session timeout that the ensemble has granted, within its own limits."""
        self._connect(self._answer_s)
        return float(self._connection.granted_ms) / 1000

    def ask(self, send: Callable[[KazooClient], Sequence[Any]], timeout_s: float | None = None) -> Any:  # noqa: ANN401 - kazoo has no types
        """Send requests, and return the answer to the last one. Raises `NoNodeError` if that is the answer.

        Raises `StoreError` if a request has no answer in time: it may still be executed, and later. Without a
        connection no request is sent, since kazoo would keep it for the next connection.
        """
        bound_s = self._answer_s if timeout_s is None else min(self._answer_s, timeout_s)
        self._connect(bound_s)
        try:
            answers = [pending.get(timeout=bound_s) for pending in send(self._client)]
        except NoNodeError:
            raise
        except (KazooException, KazooTimeoutError) as error:
            raise StoreError(
                f"ZooKeeper does not answer: {error!r}", denied=isinstance(error, (AuthFailedError, NoAuthError))
            ) from error
        return answers[-1]

    def listen(self, listener: Callable[[Connection], None]) -> None:
        """Report changes to the listener; to a method while its object lives, since a backend outlives its turns."""
        reference = weakref.WeakMethod(listener) if inspect.ismethod(listener) else lambda: listener
        self._listeners = [other for other in self._listeners if other() is not None] + [reference]

    def close(self) -> None:
        """End the session."""
        with self._starting:
            if self._connected is not None:
                self._on_state(KazooState.LOST)  # before a waiter can see the end of the session
                self._client.stop()
                self._client.close()
                self._connected = None

    def _connect(self, timeout_s: float) -> None:
        with self._starting:
            if self._connected is None:
                self._connected = self._client.start_async()
            connected = self._connected
        if not connected.wait(timeout_s):
            raise StoreError(f"ZooKeeper does not answer: no connection in {timeout_s:.0f} s")

    def _on_state(self, state: str) -> None:
        for reference in list(self._listeners):
            if (listener := reference()) is not None:
                listener(_CONNECTIONS[state])


class _Connection(ConnectionHandler):  # type: ignore[misc] # kazoo has no types
    """kazoo's connection, which keeps the granted session timeout, and retries sooner."""

    granted_ms = 0

    def _invoke(self, timeout: float, request: object, xid: int | None = None) -> Any:  # noqa: ANN401 - as in kazoo
        if not isinstance(request, Connect):
            return super()._invoke(timeout, request, xid)
        # kazoo waits a whole session timeout for a server that accepts and does not answer, as one may at its start.
        answer = super()._invoke(min(timeout, max(_ANSWER_MIN_S, timeout / _GREETINGS_IN_A_LEASE)), request, xid)
        self.granted_ms = answer[0].time_out
        return answer
