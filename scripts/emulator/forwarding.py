"""Hand a request on to another server of this machine."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING, Final

from scripts.emulator.exchange import Reply

if TYPE_CHECKING:
    from scripts.emulator.exchange import Request

__all__ = ["forward"]

_TIMEOUT_S: Final = 60.0
_OF_THE_CONNECTION: Final = frozenset({"HTTP_HOST", "HTTP_CONNECTION", "HTTP_ACCEPT_ENCODING", "HTTP_CONTENT_LENGTH"})


def forward(address: str, request: Request, *, path: str) -> Reply:
    """Ask the server at `address`, `host:port`, for `path` in place of the request's own."""
    environ = request.environ
    headers = {
        name.removeprefix("HTTP_").replace("_", "-"): value
        for name, value in environ.items()
        if name.startswith("HTTP_") and name not in _OF_THE_CONNECTION
    }
    if environ.get("CONTENT_TYPE"):
        headers["Content-Type"] = environ["CONTENT_TYPE"]
    connection = http.client.HTTPConnection(address, timeout=_TIMEOUT_S)
    try:
        connection.request(environ["REQUEST_METHOD"], path, request.body() or None, headers)
        answer = connection.getresponse()
        return Reply(answer.status, tuple(answer.getheaders()), answer.read())
    finally:
        connection.close()
