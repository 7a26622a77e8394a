"""ZooKeeper for tests: a real server, a proxy that loses chosen replies, and sessions that end."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import TYPE_CHECKING, Final, Self

from kazoo.client import KazooClient

from tests.support.zookeeper_server import ZooKeeper

if TYPE_CHECKING:
    from pathlib import Path

    from safewriter.coordination.backends.zookeeper import ZooKeeperBackend

__all__ = ["LosingProxy", "end_session", "start_zookeeper"]

_MULTI: Final = 14
"""The protocol's number of a transaction; https://zookeeper.apache.org/doc/current/zookeeperInternals.html."""


def start_zookeeper(folder: Path, *, session_min_s: float = 0.5, session_max_s: float = 60.0) -> ZooKeeper:
    """Return a context manager whose `uri` names a real server; its data are in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    return ZooKeeper(folder, session_min_s=session_min_s, session_max_s=session_max_s)


def end_session(backend: ZooKeeperBackend) -> None:
    """End a backend's session on the server: another connection takes the session over, and closes it."""
    client = backend._session._client
    other = KazooClient(",".join(f"{host}:{port}" for host, port in client.hosts), client_id=client.client_id)
    other.start()
    other.stop()
    other.close()


class LosingProxy:
    """Forwards a server's packets. After `lose_reply` it drops the reply to the next transaction, after `lose_request`
    the transaction itself, and either time the connection, as in a network failure.
    """

    def __init__(self, server: ZooKeeper) -> None:
        self._server = server
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._to_lose = ""
        self.lost = 0
        self.uri = f"zookeeper://127.0.0.1:{self._socket.getsockname()[1]}/locks"
        self._acceptor = threading.Thread(target=self._accept, daemon=True)

    def lose_reply(self) -> None:
        self._to_lose = "reply"

    def lose_request(self) -> None:
        self._to_lose = "request"

    def __enter__(self) -> Self:
        self._acceptor.start()
        return self

    def __exit__(self, *_: object) -> None:
        for one in [self._socket, *self._open]:
            _end(one)
        self._acceptor.join()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                server = socket.create_connection(("127.0.0.1", self._server.port))
                self._open += [client, server]
                lost: set[int] = set()
                for source, target, is_request in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._pass, args=(source, target, lost, is_request), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, lost: set[int], is_request: bool) -> None:  # noqa: FBT001 - a thread's arguments
        with contextlib.suppress(OSError):
            target.sendall(_packet(source))  # the handshake, which has no number
            while True:
                packet = _packet(source)
                (number,) = struct.unpack_from(">i", packet, 4)
                if is_request and self._is_to_go(packet):
                    what, self._to_lose = self._to_lose, ""
                    self.lost += 1
                    if what == "request":
                        break
                    lost.add(number)
                elif not is_request and number in lost:
                    break
                target.sendall(packet)
        _end(source)
        _end(target)

    def _is_to_go(self, packet: bytes) -> bool:
        return bool(self._to_lose) and struct.unpack_from(">i", packet, 8)[0] == _MULTI


def _packet(source: socket.socket) -> bytes:
    size = _exactly(source, 4)
    return size + _exactly(source, struct.unpack(">i", size)[0])


def _exactly(source: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        more = source.recv(count - len(found))
        if not more:
            raise ConnectionError("ended")
        found += more
    return found


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
