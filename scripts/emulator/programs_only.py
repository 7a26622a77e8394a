"""Refuse what a browser sends for a web page: any page may send requests to servers on the loopback address.

A browser names the page that sends (`Origin`), or says that a page does (`Sec-Fetch-Site`). A page whose own name leads
to this machine shows itself by that name (`Host`). Clients of S3 and of catalogs send none of these.
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
    """The beginning of each handler of a local server: a page's request gets 403, and reaches nothing."""

    def parse_request(self) -> bool:
        """Read a request's headers; return whether there is a request to answer."""
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
