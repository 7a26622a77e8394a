"""Lambda's API before the runtime interface emulator, which gives no request ids and waits also for an `Event`."""

from __future__ import annotations

import contextlib
import http.client
import uuid
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

from tests.support.serving import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["lambda_api"]


@contextlib.contextmanager
def lambda_api(emulator: str) -> Iterator[str]:
    """Serve the API before the emulator at this endpoint; return the endpoint of the API."""

    class Api(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            event = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            connection = http.client.HTTPConnection(emulator.removeprefix("http://"))
            with contextlib.closing(connection):
                connection.request("POST", self.path, event)
                body = connection.getresponse().read()
            is_queued = self.headers.get("X-Amz-Invocation-Type") == "Event"
            self.send_response(202 if is_queued else 200)
            self.send_header("X-Amzn-RequestId", str(uuid.uuid4()))
            self.send_header("Content-Length", str(0 if is_queued else len(body)))
            self.end_headers()
            self.wfile.write(b"" if is_queued else body)

        def log_message(self, *_: object) -> None:
            pass

    with serving(Api) as endpoint:
        yield endpoint
