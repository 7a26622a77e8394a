"""Stores of each kind, and the shared S3 behind those on S3."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from safewriter.objects import ObjectStore, Upload
from scripts.emulator.s3_backends import BACKENDS, opened_backend
from soal.recovery import Overlay
from soal.testing.s3 import EmbeddedS3
from tests.contract.bench import PRIVATE, Bench
from tests.support.memory_store import MemoryObjectStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from safewriter.objects.s3 import S3ObjectStore


@pytest.fixture(scope="session", params=BACKENDS)
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """The S3, on a port of its own."""
    with (
        opened_backend(request.param) as backend,
        EmbeddedS3(buckets=(PRIVATE,), hiding=(PRIVATE,), backend=backend) as server,
    ):
        yield Bench(server)


@pytest.fixture
def s3(bench: Bench) -> Bench:
    """The S3 at the beginning of a test."""
    bench.new_lake()
    return bench


@pytest.fixture
def naps() -> list[float]:
    """The store's pauses between two attempts."""
    return []


@pytest.fixture
def remote(s3: Bench, naps: list[float]) -> S3ObjectStore:
    """A store below a prefix, whose pauses take no time."""
    return s3.store("some/table", naps)


@pytest.fixture(params=["memory", "overlay", "bucket", "prefix"])
def store(request: pytest.FixtureRequest, s3: Bench) -> ObjectStore:
    """Every implementation; on S3 as a whole bucket, and as a prefix whose neighbours begin alike."""
    if request.param == "memory":
        return MemoryObjectStore()
    if request.param == "overlay":
        return Overlay(MemoryObjectStore(), lambda: datetime.now(UTC))
    if request.param == "bucket":
        return s3.store()
    s3.put("some/table2/a")
    s3.put("some/a")
    return s3.store("some/table")


@pytest.fixture
def begin_upload(store: ObjectStore, s3: Bench) -> Callable[[str], Upload]:
    """Begin a multipart upload, on S3 bypassing the store."""

    def begin(key: str) -> Upload:
        if isinstance(store, MemoryObjectStore):
            upload = Upload(key, f"id-{key}")
            store.begin_upload(upload)
            return upload
        if isinstance(store, Overlay):
            assert isinstance(store._below, MemoryObjectStore)
            store._below.begin_upload(Upload(key, f"id-{key}"))
            return Upload(key, f"id-{key}")
        full_key = store.uri(key).removeprefix(f"s3://{s3.lake}/")
        return Upload(key, s3.observer.create_multipart_upload(Bucket=s3.lake, Key=full_key)["UploadId"])

    return begin
