"""The session with ZooKeeper soon gives up a server that does not answer a new connection."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import Connect, GetData

from safewriter.coordination.backends.zookeeper_session import _Connection


@pytest.mark.parametrize(("session_s", "greeting_s"), [(60.0, 5.0), (3.0, 2.0), (1.0, 1.0)])
def test_a_server_that_says_nothing_at_first_is_left_soon(
    monkeypatch: pytest.MonkeyPatch, session_s: float, greeting_s: float
) -> None:
    """Kazoo alone would wait a whole session timeout for it, and the holder would lose its turn meanwhile."""
    waits: list[float] = []

    def invoke(_: object, timeout_s: float, *__: object) -> Any:
        waits.append(timeout_s)
        return (SimpleNamespace(time_out=40_000),)

    monkeypatch.setattr(ConnectionHandler, "_invoke", invoke)
    connection = object.__new__(_Connection)
    connection._invoke(session_s, Connect(0, 0, 1, 0, b"", None))
    connection._invoke(session_s, GetData("/lock", None), 1)

    assert waits == [greeting_s, session_s]
    assert connection.granted_ms == 40_000
