"""Uploads of shards against a server: small ones, and those in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.objects.store import StoreError
from safewriter.snapshots.write.upload import Uploader
from scripts.emulator import EmbeddedS3, Match, Refuse, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MIB = 1 << 20


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=["snapshots"]) as server:
        yield server


@pytest.fixture
def s3(server: EmbeddedS3) -> EmbeddedS3:
    server.reset()
    return server


@pytest.fixture
def shard(tmp_path: Path, size: int) -> Path:
    path = tmp_path / "shard.db"
    path.write_bytes(bytes(range(256)) * (size // 256))
    return path


def uploads(s3: EmbeddedS3) -> int:
    return len(s3.observer().list_multipart_uploads(Bucket="snapshots").get("Uploads", ()))


@pytest.mark.parametrize(("size", "requests"), [(MIB, 1), (11 * MIB, 5)])
def test_a_file_arrives_as_it_is_and_only_once(s3: EmbeddedS3, shard: Path, requests: int) -> None:
    """In one request, or in parts of five MiB; a key that is there keeps its content."""
    uploader = Uploader(s3.client(), part_bytes=5 * MIB)
    uploader.upload(shard, "s3://snapshots/a/shard.db")
    assert len(s3.trace()) == requests
    found = s3.observer().get_object(Bucket="snapshots", Key="a/shard.db")["Body"].read()
    assert found == shard.read_bytes()
    with pytest.raises(StoreError, match=r"PUT s3://snapshots/a/shard\.db"):
        uploader.upload(shard, "s3://snapshots/a/shard.db")
    assert uploads(s3) == 0


@pytest.mark.parametrize("size", [11 * MIB])
@pytest.mark.parametrize("operation", ["UploadPart", "CompleteMultipartUpload"])
def test_an_upload_that_fails_leaves_nothing(s3: EmbeddedS3, shard: Path, operation: str) -> None:
    """No object, and no parts that cost money."""
    s3.wire.add(Rule(Match(operations={operation}), Refuse(503)))
    with pytest.raises(StoreError):
        Uploader(s3.client(), part_bytes=5 * MIB).upload(shard, "s3://snapshots/a/shard.db")
    assert (s3.keys("snapshots"), uploads(s3)) == ((), 0)
