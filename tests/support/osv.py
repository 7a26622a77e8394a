"""A local server with OSV's published interface, with faults on request."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from tests.support.serving import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FakeOsv", "serve", "vulnerability"]


@dataclass
class FakeOsv:
    """The server's data: the names of advisories by package URL, in pages, and each advisory's text.

    `faults` are status codes for the next requests; `raw`, if given, is the body of every answer.
    """

    pages: dict[str, list[list[str]]] = field(default_factory=dict)
    told: dict[str, dict[str, Any]] = field(default_factory=dict)
    faults: list[int] = field(default_factory=list)
    raw: bytes | None = None
    requests: list[tuple[str, Any]] = field(default_factory=list)
    url: str = ""

    def answer(self, path: str, body: Any) -> tuple[int, bytes]:
        """Return status and body."""
        self.requests.append((path, body))
        if self.faults:
            return self.faults.pop(0), b'{"code": 13, "message": "a fault of the test"}'
        if self.raw is not None:
            return 200, self.raw
        if path == "/v1/querybatch":
            return 200, json.dumps({"results": [self._result(query) for query in body["queries"]]}).encode()
        told = self.told.get(path.removeprefix("/v1/vulns/"))
        return (200, json.dumps(told).encode()) if told else (404, b'{"code": 5, "message": "Bug not found."}')

    def _result(self, query: dict[str, Any]) -> dict[str, Any]:
        pages = self.pages.get(query["package"]["purl"], [])
        number = int(query.get("page_token", "0"))
        if number >= len(pages):
            return {}
        found = [{"id": one, "modified": "2026-05-07T01:02:03.000004Z"} for one in pages[number]]
        more = {"next_page_token": str(number + 1)} if number + 1 < len(pages) else {}
        return {"vulns": found, **more}


def vulnerability(name: str, package: str, *fixed: str, **more: Any) -> dict[str, Any]:
    """An advisory in the form of https://ossf.github.io/osv-schema/, with GitHub's additional fields."""
    ranges = [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": one}]} for one in fixed]
    return {
        "schema_version": "1.7.3",
        "id": name,
        "modified": "2026-05-07T01:02:03.000004Z",
        "published": "2026-05-06T00:00:00Z",
        "aliases": ["CVE-2026-11111"],
        "summary": "A parser does not stop",
        "details": "More of it.",
        "severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H"}],
        "affected": [
            {
                "package": {"ecosystem": "Maven", "name": package, "purl": f"pkg:maven/{package.replace(':', '/')}"},
                "ranges": [one],
                "database_specific": {"source": "https://example.org/advisory.json"},
            }
            for one in ranges
        ],
        "references": [{"type": "WEB", "url": "https://example.org/advisory"}],
        "database_specific": {"severity": "HIGH", "github_reviewed": True},
        **more,
    }


@contextmanager
def serve(osv: FakeOsv) -> Iterator[str]:
    """Run it on the loopback address; yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self._give(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def do_GET(self) -> None:
            self._give(None)

        def _give(self, body: Any) -> None:
            status, content = osv.answer(self.path, body)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            """Print nothing: the requests are in the list."""

    with serving(Handler) as endpoint:
        yield endpoint
