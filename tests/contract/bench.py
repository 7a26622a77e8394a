"""An S3 that tests share, each with a bucket of its own."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from safewriter.objects.s3 import PAUSES_S, S3ObjectStore
from soal.testing.s3 import EmbeddedS3, Match, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safewriter.objects import ListedObject
    from soal.testing.s3.rules import Effect

PRIVATE = "private"
TRIES = len(PAUSES_S) + 1

PUT = Match(operations={"PutObject"})
GET = Match(operations={"GetObject"})


class Bench:
    """One S3 for all tests of this folder, with one client for the code under test and one for the test itself."""

    def __init__(self, server: EmbeddedS3) -> None:
        self.server = server
        self.client = server.client()
        self.observer = server.observer()
        self.lake = ""

    def new_lake(self) -> None:
        """Begin a test: an empty bucket, no rule, no trace."""
        self.server.wire.clear_rules()
        self.lake = f"lake-{uuid.uuid4().hex}"
        self.observer.create_bucket(Bucket=self.lake)
        self.server.wire.clear_trace()

    def store(self, prefix: str = "", naps: list[float] | None = None) -> S3ObjectStore:
        return S3ObjectStore(self.client, self.lake, prefix, sleep=([] if naps is None else naps).append)

    def put(self, key: str, body: bytes = b"") -> None:
        """Put an object at its full key, bypassing the store."""
        self.observer.put_object(Bucket=self.lake, Key=key, Body=body)

    def add(self, match: Match, action: Effect, times: int | None = 1) -> None:
        """Inject a fault."""
        self.server.wire.add(Rule(match, action, times=times))

    def operations(self) -> list[str]:
        return [exchange.operation for exchange in self.server.trace()]


def keys(listed: Iterator[ListedObject]) -> list[str]:
    return [row.key for row in listed]
