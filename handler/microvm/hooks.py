"""The HTTP endpoint on which Lambda calls the hooks of a MicroVM: POST to a fixed path, answered by a status.

https://docs.aws.amazon.com/lambda/latest/dg/microvms-launching.html (Lifecycle hooks, with an OpenAPI description)
https://docs.aws.amazon.com/lambda/latest/dg/microvms-images.html (MicroVM image build hooks)
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from email.message import Message
    from io import BufferedIOBase

__all__ = ["PATH", "Answer", "server_of"]

PATH: Final = "/aws/lambda-microvms/runtime/v1/"
"""Lambda calls a hook at this path and the hook's name."""
_BODY_MAX: Final = 128 << 10
"""A payload has 4,096 bytes by the API's model, 16 KB by AWS's guide; as a JSON string each byte may take six."""
_REQUEST_TIMEOUT_S: Final = 30.0
_HEXADECIMAL: Final = re.compile(rb"[0-9A-Fa-f]{1,8}")


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a hook: Lambda reads the status, people read the text."""

    status: HTTPStatus
    text: str = ""


def server_of(port: int, hooks: Mapping[str, Callable[[bytes], Answer]]) -> ThreadingHTTPServer:
    """Return a server for hooks by their names, each called with the request's body, on a thread of its own.

    It listens on all addresses: no document says from which address within the MicroVM Lambda calls. `port` 0 takes a
    free port.
    """
    return ThreadingHTTPServer(("0.0.0.0", port), _answering(hooks))  # noqa: S104 - as said above


def _answering(hooks: Mapping[str, Callable[[bytes], Answer]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = _REQUEST_TIMEOUT_S

        def do_POST(self) -> None:
            body = _body_of(self.headers, self.rfile)
            hook = hooks.get(self.path.removeprefix(PATH)) if self.path.startswith(PATH) else None
            if body is None:
                self.close_connection = True
                self._answer(Answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {_BODY_MAX} bytes"))
            elif hook is None:
                self._answer(Answer(HTTPStatus.NOT_FOUND, "is not a hook"))
            else:
                self._answer(hook(body))

        def _answer(self, answer: Answer) -> None:
            text = json.dumps({"message": answer.text}).encode() if answer.text else b""
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:  # noqa: ANN401 - its signature
            """Log nothing: the log is the job's."""

    return Handler


def _body_of(headers: Message, stream: BufferedIOBase) -> bytes | None:
    """Read a body; None if it is too large, or its length is not known."""
    if headers.get("Transfer-Encoding", "").lower() == "chunked":
        return _chunks(stream)
    length = headers.get("Content-Length", "0")
    if not (length.isascii() and length.isdigit()) or int(length) > _BODY_MAX:
        return None
    return stream.read(int(length))


def _chunks(stream: BufferedIOBase) -> bytes | None:
    body = b""
    while len(body) <= _BODY_MAX:
        size = stream.readline(32).split(b";")[0].strip()
        if not _HEXADECIMAL.fullmatch(size) or int(size, 16) > _BODY_MAX:
            return None
        body += stream.read(int(size, 16))
        stream.readline(3)
        if int(size, 16) == 0:
            return body
    return None
