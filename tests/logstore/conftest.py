"""The Java log store on an emulated S3, with helpers that put, get and break requests and list those of a test."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from soal.shipped import local_settings
from soal.testing.s3.embedded import EmbeddedS3
from soal.testing.s3.rules import Match, Rule
from tests.support.lake import CHECKPOINTS, LAKE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from soal.testing.s3.rules import Effect
    from tests.logstore.jvm import LogStore

# Only ConditionalPut retries here, not the layers below it.
_ONCE = {"attempts.maximum": "0", "retry.limit": "0", "retry.throttle.limit": "0", "endpoint.region": "us-east-1"}
AGAIN = ("again-by-sdk", "again-by-s3a")
"""Buckets whose requests are retried: by the SDK, or by S3A above it."""
_AGAIN = {f"bucket.{AGAIN[0]}.attempts.maximum": "3", f"bucket.{AGAIN[1]}.retry.limit": "3"}
_LOCAL = {
    "path.style.access": "true",
    "connection.ssl.enabled": "false",
    "paging.maximum": "8",  # so that a listing of a few names takes several requests
}


@dataclass(frozen=True)
class Bucket:
    """The log store on an emulated S3. Keys are below a folder of the test's own."""

    store: LogStore
    s3: EmbeddedS3
    bucket: str
    folder: str
    earlier: int
    """Number of requests before the test."""

    def ask(self, what: str, key: str, **request: object) -> Any:
        return self.store.ask(what, path=f"s3a://{self.bucket}/{self.folder}/{key}", **request)

    def put(self, key: str, body: str) -> None:
        self.s3.observer().put_object(Bucket=self.bucket, Key=f"{self.folder}/{key}", Body=body.encode())

    def get(self, key: str) -> str | None:
        if f"{self.folder}/{key}" not in self.s3.keys(self.bucket, self.folder):
            return None
        found = self.s3.observer().get_object(Bucket=self.bucket, Key=f"{self.folder}/{key}")
        return found["Body"].read().decode()

    def breaks(self, operation: str, action: Effect, times: int | None = 1) -> None:
        match = Match(operations={operation}, bucket=self.bucket, key=self.folder)
        self.s3.wire.add(Rule(match, action, times=times))

    def requests(self) -> list[str]:
        """Return the test's requests to S3, listings included: operation, and the condition if there was one."""
        since = [one for one in self.s3.trace()[self.earlier :] if one.bucket == self.bucket]
        asked = [one for one in since if not one.key or one.key.startswith(self.folder)]
        return [f"{one.operation} {one.condition or ''}".strip() for one in asked]


@pytest.fixture(scope="session")
def stores(logstore: LogStore) -> Iterator[EmbeddedS3]:
    """The emulated S3 that the log store's file system uses."""
    with EmbeddedS3(buckets=(LAKE, CHECKPOINTS, *AGAIN), unlistable=(CHECKPOINTS,)) as s3:
        shipped = {
            key.removeprefix("spark.hadoop."): value
            for key, value in local_settings().items()
            if key.startswith("spark.hadoop.fs.s3")
        }
        ours = {f"fs.s3a.{key}": value for key, value in {**_ONCE, **_AGAIN, **_LOCAL, "endpoint": s3.endpoint}.items()}
        logstore.ask("settings", settings={**shipped, **ours})
        yield s3


@pytest.fixture
def lake(logstore: LogStore, stores: EmbeddedS3) -> Iterator[Bucket]:
    yield Bucket(logstore, stores, LAKE, uuid.uuid4().hex, earlier=len(stores.trace()))
    stores.wire.clear_rules()
