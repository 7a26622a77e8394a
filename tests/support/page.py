"""A proxy that wants a log-in: it answers each request with status 200 and a page."""

from __future__ import annotations

import contextlib
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

from tests.support.serving import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PAGE", "page"]

PAGE = "<html><body>Log in</body></html>"


@contextlib.contextmanager
def page(text: str = PAGE, status: int = 200) -> Iterator[str]:
    """Serve the page, with another status if one is given; return the endpoint."""

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - the names of the protocol's methods

        def log_message(self, *_: object) -> None:
            pass

    with serving(Proxy) as endpoint:
        yield endpoint
