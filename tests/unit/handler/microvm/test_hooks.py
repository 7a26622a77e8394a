"""The endpoint of a MicroVM's hooks: paths, bodies, statuses."""

from __future__ import annotations

import http.client
import socket
import threading
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import pytest

from handler.microvm.hooks import PATH, Answer, server_of

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGE = 300_000


@pytest.fixture
def port() -> Iterator[int]:
    server = server_of(0, {"run": lambda body: Answer(HTTPStatus.OK, f"got {body.decode()}")})
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


def post(port: int, path: str, **more: Any) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", path, **more)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_a_hook_is_called_at_its_published_path(port: int) -> None:
    """Any other path is no hook."""
    assert PATH == "/aws/lambda-microvms/runtime/v1/"
    assert post(port, f"{PATH}run", body=b"x") == (200, '{"message": "got x"}')
    assert post(port, f"{PATH}run") == (200, '{"message": "got "}')
    assert [post(port, path)[0] for path in ("/run", f"{PATH}start", f"/x{PATH}run")] == [404, 404, 404]


def test_a_body_may_come_in_chunks(port: int) -> None:
    """No document says how Lambda sends it."""
    assert post(port, f"{PATH}run", body=iter([b"ab", b"c"]), encode_chunked=True) == (200, '{"message": "got abc"}')


def test_a_body_has_a_bound(port: int) -> None:
    """A payload has 16 KB; what is much larger is not Lambda's."""
    assert post(port, f"{PATH}run", body=b"x", headers={"Content-Length": str(LARGE)})[0] == 413
    for wrong in ("-1", "x", "²"):
        assert post(port, f"{PATH}run", body=b"x", headers={"Content-Length": wrong})[0] == 413
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        head = f"POST {PATH}run HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{LARGE:x}\r\n"
        connection.sendall(head.encode())
        assert connection.recv(12) == b"HTTP/1.1 413"
