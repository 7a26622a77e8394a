"""An HTTP/1.1 server for WSGI that keeps connections open.

Werkzeug's server closes each connection after a response, so every request of an S3 client costs a connection. Here
each response has a length, and the server closes the connection if the application has not read the whole request
body: otherwise it would look for the next request line inside a body.
"""

from __future__ import annotations

import contextlib
import io
import socket
import threading
from email.utils import formatdate
from typing import Any, Final

from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.serving import ThreadedWSGIServer
from werkzeug.test import run_wsgi_app

from soal.testing.s3.exchange import ConnectionDropped
from soal.testing.s3.programs_only import ForPrograms

_CONNECTION_HEADERS: Final = frozenset({"connection", "content-length", "transfer-encoding"})
_NO_BODY: Final = frozenset({204, 304})


class _Counted(io.RawIOBase):
    """A request body that ends at its Content-Length, and counts the bytes left."""

    def __init__(self, source: Any, size_bytes: int) -> None:  # noqa: ANN401 - the socket's file
        self._source = source
        self.left_bytes = size_bytes

    def read(self, size: int = -1, /) -> bytes:
        count = self.left_bytes if size < 0 else min(size, self.left_bytes)
        data: bytes = self._source.read(count) if count else b""
        self.left_bytes -= len(data)
        return data


class _Handler(ForPrograms, MotoRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # otherwise the second packet of a response waits 40 ms for an acknowledgement
    server: KeepAliveServer

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self.connection)

    def finish(self) -> None:
        self.server.connections.discard(self.connection)
        with contextlib.suppress(OSError, ValueError):
            super().finish()

    def run_wsgi(self) -> None:
        environ = self.make_environ()
        body = None
        if not environ.get("wsgi.input_terminated"):
            body = _Counted(self.rfile, int(environ.get("CONTENT_LENGTH") or 0))
            environ["wsgi.input"] = body
        try:
            chunks, status, headers = run_wsgi_app(self.server.app, environ, buffered=True)
            self._send(status, list(headers), b"".join(chunks))
        except (ConnectionDropped, ConnectionError, ValueError):  # ValueError: the file of a closed connection
            self.close_connection = True
        if body is not None and body.left_bytes:
            self.close_connection = True

    def _send(self, status: str, headers: list[tuple[str, str]], content: bytes) -> None:
        """Write the response in one piece."""
        code, _, reason = status.partition(" ")
        is_head = self.command == "HEAD"
        self.send_response_only(int(code), reason)
        lower = {name.lower(): value for name, value in headers}
        for name, value in headers:
            if name.lower() not in _CONNECTION_HEADERS:
                self.send_header(name, value)
        if "date" not in lower:
            self.send_header("Date", formatdate(usegmt=True))
        if int(code) not in _NO_BODY:
            length = lower.get("content-length", "0") if is_head else str(len(content))
            self.send_header("Content-Length", length)
        self._headers_buffer.append(b"\r\n")
        if not is_head:
            self._headers_buffer.append(content)
        self.wfile.write(b"".join(self._headers_buffer))
        self._headers_buffer.clear()
        self.wfile.flush()

    def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002 - the name in werkzeug
        """Log nothing: the trace contains more, and stderr belongs to the caller."""


class KeepAliveServer(ThreadedWSGIServer):
    """Serves one WSGI application on loopback, one thread for each connection."""

    daemon_threads = True

    def __init__(self, app: Any, port: int) -> None:  # noqa: ANN401 - a WSGI application
        self.connections: set[socket.socket] = set()
        super().__init__("127.0.0.1", port, app, handler=_Handler)
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def start(self) -> None:
        """Serve in a separate thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the server and close the connections that clients have left open."""
        self.shutdown()
        self.server_close()
        for connection in tuple(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._thread.join(timeout=10)
