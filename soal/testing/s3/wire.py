"""The layer between the clients and an S3: it classifies each request, keeps a trace, and applies rules.

It passes requests on as they come, several at once. And it answers 403 for a missing key to a caller that may not list
the bucket, unless the caller may list just that key.

Requests to a local catalog can pass through the wire, too, so that trace and rules see one order of all requests.
"""

from __future__ import annotations

import http.client
import threading
import time
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Final

from soal.testing.s3.exchange import Exchange, Reply, Request
from soal.testing.s3.labels import catalog_operation

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from soal.testing.s3.backend import Backend
    from soal.testing.s3.rules import Rule

_TIMEOUT_S: Final = 60.0
_OF_THE_CONNECTION: Final = frozenset(
    {"HTTP_HOST", "HTTP_CONNECTION", "HTTP_ACCEPT_ENCODING", "HTTP_CONTENT_LENGTH", "HTTP_TRANSFER_ENCODING"}
)
# The access key of the observer: not in the trace, hit by no rule, allowed everything.
OBSERVER: Final = "AKIAOBSERVER"
_LISTING: Final = frozenset({"ListObjects", "ListObjectsV2", "ListObjectVersions"})
_READING: Final = frozenset({"GetObject", "HeadObject"})
_MISSING: Final = 404
_TRACE_LIMIT: Final = 1_000_000


def forward(address: str, request: Request, *, path: str, host: str | None = None) -> Reply:
    """Send the request to the server at `address`, `host:port`, with `path` as its path and `host` as its Host."""
    environ = request.environ
    headers = {
        name.removeprefix("HTTP_").replace("_", "-"): value
        for name, value in environ.items()
        if name.startswith("HTTP_") and name not in _OF_THE_CONNECTION
    }
    if environ.get("CONTENT_TYPE"):
        headers["Content-Type"] = environ["CONTENT_TYPE"]
    if host is not None:
        headers["Host"] = host
    connection = http.client.HTTPConnection(address, timeout=_TIMEOUT_S)
    try:
        connection.request(environ["REQUEST_METHOD"], path, request.body() or None, headers)
        answer = connection.getresponse()
        return Reply(answer.status, tuple(answer.getheaders()), answer.read())
    finally:
        connection.close()


class Wire:
    """A WSGI application around a backend."""

    def __init__(
        self,
        backend: Backend,
        *,
        rules: Iterable[Rule] = (),
        unlistable: Collection[str] = (),
        hiding: Collection[str] = (),
    ) -> None:
        self._backend = backend
        self._hiding = frozenset(hiding)
        self._unlistable = frozenset(unlistable) | self._hiding
        self._counting = threading.Lock()
        self._rules = list(rules)
        self._trace: list[Exchange] = []
        self._in_flight = 0
        self._catalogs: dict[str, tuple[str, str]] = {}
        self.clock_ahead_s = 0.0
        """Added to the `Date` of responses, so that tests can expire a lease without waiting."""

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
        request = Request.of(environ, self._apply)
        if request.bucket in self._catalogs:
            request.operation = catalog_operation(environ["REQUEST_METHOD"], request.key)
        reply = request.apply() if request.access_key == OBSERVER else self._observed(request)
        date = formatdate(time.time() + self.clock_ahead_s, usegmt=True)
        start_response(reply.line, [*(pair for pair in reply.headers if pair[0].lower() != "date"), ("Date", date)])
        return [reply.body]

    def lead(self, name: str, address: str, host: str) -> None:
        """Forward requests for the bucket `name` to the catalog at `address`, `host:port`, with `host` as Host."""
        self._catalogs[name] = (address, host)

    def add(self, rule: Rule) -> Rule:
        """Append a rule; it acts from now on."""
        with self._counting:
            self._rules.append(rule)
        return rule

    def remove(self, rule: Rule) -> None:
        """Remove a rule."""
        with self._counting:
            self._rules.remove(rule)

    def clear_rules(self) -> None:
        """Remove all rules."""
        with self._counting:
            self._rules.clear()

    def trace(self) -> tuple[Exchange, ...]:
        """Return the requests answered or dropped so far, in order of completion."""
        with self._counting:
            return tuple(self._trace)

    @property
    def is_quiet(self) -> bool:
        """Whether every request has been answered or dropped."""
        with self._counting:
            return self._in_flight == 0

    def clear_trace(self) -> None:
        """Clear the trace."""
        with self._counting:
            self._trace.clear()

    def _observed(self, request: Request) -> Reply:
        started_ns = time.monotonic_ns()
        rule = self._count(request)
        status = None
        try:
            reply = request.apply() if rule is None else rule.act(request)
            status = reply.status
        finally:
            self._record(request, status, started_ns)
        return reply

    def _count(self, request: Request) -> Rule | None:
        """Let the rules count the request; return the one that hits it."""
        with self._counting:
            self._in_flight += 1
            # Every rule counts, even after one that hits, so that `nth` does not depend on other rules.
            fired = [rule for rule in self._rules if rule.takes(request)]
            return fired[0] if fired else None

    def _record(self, request: Request, status: int | None, started_ns: int) -> None:
        exchange = Exchange(
            operation=request.operation,
            bucket=request.bucket,
            key=request.key,
            key_class=request.key_class,
            condition=request.condition,
            body_bytes=request.body_bytes,
            status=status,
            applied=request.applied,
            started_ns=started_ns,
            ended_ns=time.monotonic_ns(),
        )
        with self._counting:
            self._in_flight -= 1
            if len(self._trace) < _TRACE_LIMIT:
                self._trace.append(exchange)

    def _apply(self, request: Request) -> Reply:
        if (catalog := self._catalogs.get(request.bucket)) is not None:
            address, host = catalog
            path = str(request.environ["RAW_URI"]).removeprefix(f"/{request.bucket}")
            return forward(address, request, path=path, host=host)
        is_observer = request.access_key == OBSERVER
        if not is_observer and request.bucket in self._unlistable and request.operation in _LISTING:
            return Reply.error(403, "not allowed: s3:ListBucket")
        reply = self._backend.answer(request)
        is_hidden = not is_observer and request.bucket in self._hiding
        if is_hidden and request.operation in _READING and reply.status == _MISSING:
            return Reply.error(403, "not allowed: s3:ListBucket")
        return reply
