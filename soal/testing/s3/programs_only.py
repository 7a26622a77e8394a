"""Refuse requests from web pages: a browser lets any page send requests to servers on loopback.

A browser names the page (`Origin`), or says that a page sends the request (`Sec-Fetch-Site`). If the page's name
resolves to this machine, the request has that name as `Host`. Clients of S3 and of catalogs send none of these.
"""

from __future__ import annotations

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from email.message import Message

_OWN: Final = frozenset({"127.0.0.1", "localhost", "::1"})


class ForPrograms(BaseHTTPRequestHandler):
    """The base class of local servers' handlers. It answers a page's request with 403."""

    def parse_request(self) -> bool:
        """Parse a request's headers; return whether the handler should answer it."""
        if not super().parse_request():
            return False
        if (why := _of_a_page(self.headers)) is None:
            return True
        self.send_error(HTTPStatus.FORBIDDEN, f"not for web pages: {why}")
        return False


def _of_a_page(headers: Message) -> str | None:
    if "Origin" in headers:
        return "it has an Origin"
    if any(site.strip().lower() != "none" for site in headers.get_all("Sec-Fetch-Site", ())):
        return "a page has sent it"
    hosts = headers.get_all("Host", [""])
    return None if len(hosts) == 1 and _name(hosts[0]) in _OWN else "its Host is not this machine"


def _name(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None
