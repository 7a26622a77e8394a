"""Shards in SlateDB without Spark, on the embedded S3; tests that do not need the package run without it."""

from __future__ import annotations

import os
import pickle
from typing import TYPE_CHECKING

import pytest

from safewriter.snapshots.errors import ConfigValidationError, MissingPackageError
from safewriter.snapshots.write.sinks import AdapterSink
from safewriter.snapshots.write.slatedb import SlateDbFactory
from soal.testing.s3.embedded import EmbeddedS3
from tests.support.slatedb import needs_slatedb, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

URL = "s3://lake/kv/shards/run_id=r/db=00000/attempt=00-b-t"
ROWS = {number.to_bytes(8, "big"): b"value %d" % number for number in range(300)}


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=["lake"]) as s3:
        for name, value in s3.environment().items():
            monkeypatch.setenv(name, value)
        for name in ("AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST"):
            monkeypatch.delenv(name, raising=False)
        yield s3


def sink(folder: Path, factory: SlateDbFactory, url: str = URL) -> AdapterSink:
    return AdapterSink(url, folder / "shard", factory)


@needs_slatedb
def test_what_was_sealed_is_whole(s3: EmbeddedS3, tmp_path: Path) -> None:
    """All batches are durable below the shard's URL; the size is that of the objects."""
    shard = sink(tmp_path, pickle.loads(pickle.dumps(SlateDbFactory())))  # noqa: S301 - as it travels
    keys = list(ROWS)
    for first in range(0, 300, 100):
        some = keys[first : first + 100]
        shard.add(some, [ROWS[key] for key in some])
    shard.add([], [])
    stored = shard.finish()
    listed = s3.observer().list_objects_v2(Bucket="lake")["Contents"]
    assert (stored.rows, stored.sha256) == (300, None)
    assert stored.db_bytes == sum(row["Size"] for row in listed) > 300 * 10
    assert all(f"s3://lake/{row['Key']}".startswith(f"{URL}/") for row in listed)
    assert not [row["Key"] for row in listed if "/wal/" in row["Key"]]
    assert rows_of(URL, s3) == ROWS


@needs_slatedb
def test_a_shard_that_failed_is_closed(s3: EmbeddedS3, tmp_path: Path) -> None:
    """A later write raises; a second close does nothing."""
    shard = sink(tmp_path, SlateDbFactory())
    shard.add([b"k"], [b"v"])
    shard.abandon(ValueError("of a row"))
    shard.abandon(ValueError("of a row"))
    with pytest.raises(ValueError, match=f"write {URL}: the shard is closed"):
        shard.add([b"l"], [b"w"])


@needs_slatedb
def test_the_environment_is_as_it_was(s3: EmbeddedS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SlateDB uses the endpoint that boto3 would use, whatever other variables say."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    before = dict(os.environ)
    sink(tmp_path, SlateDbFactory()).finish()
    assert dict(os.environ) == before
    assert s3.keys("lake")


@needs_slatedb
def test_a_database_that_does_not_answer_ends_the_attempt(s3: EmbeddedS3, tmp_path: Path) -> None:
    """SlateDB itself would retry a missing bucket until the task is killed."""
    with pytest.raises(TimeoutError, match=r"open s3://nowhere/x: SlateDB has not answered for 0\.2 s"):
        sink(tmp_path, SlateDbFactory(timeout_s=0.2), "s3://nowhere/x")


def test_the_endpoint_is_that_of_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """The factory takes it along to the tasks."""
    monkeypatch.setattr("safewriter.snapshots.write.slatedb.find_spec", lambda _: object())
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://here")
    assert SlateDbFactory().endpoint == "http://here"


def test_a_machine_without_the_package_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The factory raises at construction, before anything is read."""
    monkeypatch.setattr("safewriter.snapshots.write.slatedb.find_spec", lambda _: None)
    with pytest.raises(MissingPackageError, match=r"need the package slatedb, .*install soal\[slatedb\]"):
        SlateDbFactory()


def test_a_time_limit_is_positive() -> None:
    """A timeout of zero is refused."""
    with pytest.raises(ConfigValidationError, match="timeout_s is 0"):
        SlateDbFactory(timeout_s=0)
