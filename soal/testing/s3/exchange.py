"""One request and its answer in the emulator, and their record."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from soal.testing.s3.labels import MUTATING, dynamodb_operation, key_class, operation

if TYPE_CHECKING:
    from collections.abc import Callable

_CONDITIONS: Final = ("If-Match", "If-None-Match")
_CREDENTIAL: Final = re.compile(r"Credential=([^/,\s]+)/")
_CODES: Final = {
    403: "AccessDenied",
    404: "NoSuchKey",
    409: "ConditionalRequestConflict",
    412: "PreconditionFailed",
    500: "InternalError",
    501: "NotImplemented",
    503: "SlowDown",
}


class ConnectionDropped(Exception):  # noqa: N818 - the name says what happens to the client
    """The server must close the connection without an answer."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """The record of one request. Times are monotonic, in nanoseconds; `body_bytes` is the size on the wire.

    `status` is the status sent to the client, or None; `applied` is S3's status, None if S3 did not get the request.
    """

    operation: str
    bucket: str
    key: str
    key_class: str
    condition: str | None
    body_bytes: int
    status: int | None
    applied: int | None
    started_ns: int
    ended_ns: int


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete HTTP response."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @classmethod
    def error(cls, status: int, message: str) -> Reply:
        """Return an error response in S3's format."""
        code = _CODES.get(status, "InternalError")
        body = (
            f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'
        ).encode()
        return cls(status, (("Content-Type", "application/xml"),), body)

    @property
    def line(self) -> str:
        """Return the status with its reason, e.g. `404 Not Found`."""
        try:
            return f"{self.status} {HTTPStatus(self.status).phrase}"
        except ValueError:
            return f"{self.status} -"


@dataclass(slots=True, eq=False)
class Request:
    """One request: its meaning, its body (read at the first access), and the function that applies it."""

    environ: dict[str, Any]
    operation: str
    bucket: str
    key: str
    key_class: str
    condition: str | None
    access_key: str | None
    apply_to: Callable[[Request], Reply]
    applied: int | None = None
    body_bytes: int = 0
    _body: bytes | None = field(default=None, repr=False)

    @classmethod
    def of(cls, environ: dict[str, Any], apply_to: Callable[[Request], Reply]) -> Request:
        """Parse a WSGI request."""
        path = str(environ.get("PATH_INFO", "/")).encode("latin-1").decode("utf-8", "replace").lstrip("/")
        bucket, _, key = path.partition("/")
        query = dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
        is_copy = "HTTP_X_AMZ_COPY_SOURCE" in environ
        name = dynamodb_operation(environ.get("HTTP_X_AMZ_TARGET", "")) or operation(
            environ["REQUEST_METHOD"], bucket=bucket, key=key, query=query, is_copy=is_copy
        )
        conditions = [
            f"{header}: {environ[variable]}"
            for header in _CONDITIONS
            if (variable := "HTTP_" + header.upper().replace("-", "_")) in environ
        ]
        credential = _CREDENTIAL.search(environ.get("HTTP_AUTHORIZATION", ""))
        return cls(
            environ=environ,
            operation=name,
            bucket=bucket,
            key=key,
            key_class=key_class(key),
            condition=", ".join(conditions) or None,
            access_key=credential[1] if credential else None,
            apply_to=apply_to,
        )

    @property
    def is_mutating(self) -> bool:
        """Whether the request changes stored objects."""
        return self.operation in MUTATING

    def read_half(self) -> None:
        """Read half of the body, as if the client died during the upload."""
        announced = int(self.environ.get("CONTENT_LENGTH") or 0)
        self.body_bytes = len(self.environ["wsgi.input"].read(announced // 2))

    def body(self) -> bytes:
        """Return the whole body as sent. Raises `ConnectionDropped` if the client hung up before its end."""
        if self._body is None:
            announced = self.environ.get("CONTENT_LENGTH")
            self._body = self.environ["wsgi.input"].read() if announced is None else self._announced(int(announced))
            self.body_bytes = len(self._body)
        return self._body

    def _announced(self, size_bytes: int) -> bytes:
        body: bytes = self.environ["wsgi.input"].read(size_bytes)
        if len(body) < size_bytes:
            raise ConnectionDropped
        return body

    def apply(self) -> Reply:
        """Send the request to S3 and return its response, before the client gets it."""
        body = self.body()
        self.environ["wsgi.input"] = io.BytesIO(body)
        self.environ["CONTENT_LENGTH"] = str(len(body))
        reply = self.apply_to(self)
        self.applied = reply.status
        return reply
