"""Uploads of shards to a server: small ones, and those in parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from safewriter.objects.store import StoreError
from safewriter.snapshots.write.upload import PAUSES_S, Uploader
from soal.testing.s3 import EmbeddedS3, Kill, Match, Refuse, Rule
from soal.testing.s3.exchange import Reply
from tests.support.page import PAGE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from soal.testing.s3.exchange import Request

MIB = 1 << 20


@dataclass(frozen=True)
class Coded:
    """Answer a request with an error of this name, without applying it."""

    status: int
    code: str

    def __call__(self, request: Request) -> Reply:
        request.body()
        body = f"<Error><Code>{self.code}</Code><Message>refused</Message></Error>".encode()
        return replace(Reply.error(self.status, ""), body=body)


def page(request: Request) -> Reply:
    """Answer as a proxy does that wants a log-in."""
    request.body()
    return Reply(200, (("Content-Type", "text/html"),), PAGE.encode())


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
    """In one request, or in parts of five MiB; an existing key keeps its content."""
    uploader = Uploader(s3.client(), part_bytes=5 * MIB)
    uploader.upload(shard, "s3://snapshots/a/shard.db")
    assert len(s3.trace()) == requests
    found = s3.observer().get_object(Bucket="snapshots", Key="a/shard.db")["Body"].read()
    assert found == shard.read_bytes()
    with pytest.raises(StoreError, match=r"PUT s3://snapshots/a/shard\.db"):
        uploader.upload(shard, "s3://snapshots/a/shard.db")
    assert uploads(s3) == 0


REQUESTS = pytest.mark.parametrize(
    ("size", "operation"),
    [
        (MIB, "PutObject"),
        (11 * MIB, "CreateMultipartUpload"),
        (11 * MIB, "UploadPart"),
        (11 * MIB, "CompleteMultipartUpload"),
    ],
)


def upload(s3: EmbeddedS3, shard: Path, pauses: list[float]) -> bytes:
    """Upload a file; return the object."""
    Uploader(s3.client(), part_bytes=5 * MIB, sleep=pauses.append).upload(shard, "s3://snapshots/a/shard.db")
    return s3.observer().get_object(Bucket="snapshots", Key="a/shard.db")["Body"].read()


@REQUESTS
@pytest.mark.parametrize("status", [500, 503, 409])
def test_a_request_that_fails_for_a_moment_is_tried_again(
    s3: EmbeddedS3, shard: Path, operation: str, status: int
) -> None:
    """After a pause: a local Spark does not repeat the task."""
    code = "ConditionalRequestConflict" if status == 409 else "refused"
    s3.wire.add(Rule(Match(operations={operation}), Coded(status, code), times=len(PAUSES_S)))
    pauses: list[float] = []
    assert upload(s3, shard, pauses) == shard.read_bytes()
    assert (tuple(pauses), uploads(s3)) == (PAUSES_S, 0)


@pytest.mark.parametrize(("size", "operation"), [(MIB, "PutObject"), (11 * MIB, "CompleteMultipartUpload")])
def test_an_object_that_is_there_though_the_answer_was_lost_is_ours(
    s3: EmbeddedS3, shard: Path, operation: str
) -> None:
    """The second attempt finds the key taken, and the object has the mark of this upload."""
    s3.wire.add(Rule(Match(operations={operation}), Kill("after", lambda: None)))
    pauses: list[float] = []
    assert upload(s3, shard, pauses) == shard.read_bytes()
    assert (tuple(pauses), uploads(s3)) == (PAUSES_S[:1], 0)


@pytest.mark.parametrize(("size", "operation"), [(MIB, "PutObject"), (11 * MIB, "CompleteMultipartUpload")])
def test_an_object_of_somebody_else_is_an_error_also_at_a_second_try(
    s3: EmbeddedS3, shard: Path, operation: str
) -> None:
    """Even if the content is the same: the other object stays, and no part of this upload."""
    Uploader(s3.client(), part_bytes=5 * MIB).upload(shard, "s3://snapshots/a/shard.db")
    s3.wire.add(Rule(Match(operations={operation}), Refuse(503)))
    pauses: list[float] = []
    with pytest.raises(StoreError, match="PreconditionFailed"):
        upload(s3, shard, pauses)
    assert (tuple(pauses), uploads(s3)) == (PAUSES_S[:1], 0)


@REQUESTS
@pytest.mark.parametrize(("status", "code"), [(403, "AccessDenied"), (501, "NotImplemented")])
def test_a_refusal_for_good_is_not_tried_again(
    s3: EmbeddedS3, shard: Path, operation: str, status: int, code: str
) -> None:
    """It fails immediately, and leaves no object, and no parts that cost money."""
    s3.wire.add(Rule(Match(operations={operation}), Coded(status, code)))
    pauses: list[float] = []
    with pytest.raises(StoreError, match=code):
        upload(s3, shard, pauses)
    assert (pauses, s3.keys("snapshots"), uploads(s3)) == ([], (), 0)


@REQUESTS
def test_an_upload_that_fails_leaves_nothing(s3: EmbeddedS3, shard: Path, operation: str) -> None:
    """After the last attempt there is no object, and there are no parts."""
    s3.wire.add(Rule(Match(operations={operation}), Refuse(503), times=None))
    pauses: list[float] = []
    with pytest.raises(StoreError):
        upload(s3, shard, pauses)
    assert (tuple(pauses), s3.keys("snapshots"), uploads(s3)) == (PAUSES_S, (), 0)


@REQUESTS
def test_a_page_of_a_proxy_is_no_upload(s3: EmbeddedS3, shard: Path, operation: str) -> None:
    """One page is asked again; nothing but pages is an error, and no object."""
    s3.wire.add(Rule(Match(operations={operation}), page, times=None))
    with pytest.raises(StoreError, match="not from S3"):
        upload(s3, shard, [])
    assert (s3.keys("snapshots"), uploads(s3)) == ((), 0)
    s3.wire.clear_rules()
    s3.wire.add(Rule(Match(operations={operation}), page))
    assert upload(s3, shard, []) == shard.read_bytes()
