"""The requests of one process's S3 client, noted by the client itself: on any server, without anything between."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from safewriter.objects.s3 import shared_client

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Noted", "Request", "listings", "received_bytes", "verdict_ns"]


@dataclass(frozen=True, slots=True)
class Request:
    """`key` begins with a slash; `ended_ns` is of the monotonic clock, when the answer's head was there."""

    operation: str
    bucket: str
    key: str
    ended_ns: int
    received_bytes: int


class Noted:
    """The requests of the client that this process shares, from now on."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._path = ""
        events: Any = shared_client().meta.events
        events.register("before-call.s3", self._before)
        events.register("after-call.s3", self._after)

    def _before(self, params: Any, **_: Any) -> None:
        self._path = params["url"].partition("://")[2].partition("?")[0].partition("/")[2]

    def _after(self, http_response: Any, model: Any, **_more: Any) -> None:
        bucket, _, key = self._path.partition("/")
        size = int(http_response.headers.get("Content-Length") or 0) or len(
            b"" if model.has_streaming_output else http_response.content
        )
        self.requests.append(Request(model.name, bucket, key, time.monotonic_ns(), size))


def listings(requests: Sequence[Request]) -> int:
    """Return the number of requests that list."""
    return sum(one.operation.startswith("List") for one in requests)


def received_bytes(requests: Sequence[Request]) -> int:
    """Return the bytes of all answers."""
    return sum(one.received_bytes for one in requests)


def verdict_ns(requests: Sequence[Request], *, undone: bool) -> int:
    """Return when S3 had stored the verdict: an undo writes the document twice."""
    puts = [one.ended_ns for one in requests if one.operation == "PutObject" and one.key.startswith("checkpoints/")]
    return puts[1 if undone else 0]
