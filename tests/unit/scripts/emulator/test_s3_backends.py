"""moto and SeaweedFS, which share no code, agree except for known differences."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from scripts.emulator import seaweedfs
from scripts.emulator.s3_backends import BACKENDS, opened_backend
from scripts.emulator.seaweedfs import SeaweedFS
from soal.local.names import REGION
from soal.testing.s3.backend import Moto
from soal.testing.s3.embedded import EmbeddedS3

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mypy_boto3_s3 import S3Client

pytestmark = pytest.mark.slow

LAKE = "lake"
KEY = "a b+ü%/c"
STALE = '"00000000000000000000000000000000"'


@pytest.fixture(scope="module", params=BACKENDS)
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddedS3]:
    with opened_backend(request.param) as backend, EmbeddedS3(buckets=(LAKE,), backend=backend) as s3:
        yield s3


@pytest.fixture
def client(server: EmbeddedS3) -> S3Client:
    server.reset()
    return server.client()


def answer(call: Callable[..., Any], **arguments: Any) -> tuple[int, str | None]:
    """Return the status and the error's code."""
    try:
        return call(Bucket=LAKE, **arguments)["ResponseMetadata"]["HTTPStatusCode"], None
    except ClientError as error:
        return error.response["ResponseMetadata"]["HTTPStatusCode"], error.response["Error"]["Code"]


def test_conditional_puts_are_those_of_s3(client: S3Client) -> None:
    """https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html."""
    assert answer(client.put_object, Key=KEY, Body=b"1", IfNoneMatch="*") == (200, None)
    assert answer(client.put_object, Key=KEY, Body=b"2", IfNoneMatch="*") == (412, "PreconditionFailed")
    assert answer(client.put_object, Key=KEY, Body=b"2", IfMatch=STALE) == (412, "PreconditionFailed")
    found = client.get_object(Bucket=LAKE, Key=KEY)
    assert found["Body"].read() == b"1"
    assert answer(client.put_object, Key=KEY, Body=b"3", IfMatch=found["ETag"]) == (200, None)
    assert answer(client.get_object, Key=KEY, IfMatch=found["ETag"]) == (412, "PreconditionFailed")
    assert client.get_object(Bucket=LAKE, Key=KEY, Range="bytes=0-0")["Body"].read() == b"3"


def test_a_conditional_completion_of_an_upload_is_that_of_s3(client: S3Client) -> None:
    """A completed upload cannot be completed again, and an aborted one is gone."""

    def upload() -> dict[str, Any]:
        begun = client.create_multipart_upload(Bucket=LAKE, Key=KEY)["UploadId"]
        part = client.upload_part(Bucket=LAKE, Key=KEY, UploadId=begun, PartNumber=1, Body=b"rows")["ETag"]
        return {"Key": KEY, "UploadId": begun, "MultipartUpload": {"Parts": [{"PartNumber": 1, "ETag": part}]}}

    assert answer(client.complete_multipart_upload, **upload(), IfNoneMatch="*") == (200, None)
    late = upload()
    assert answer(client.complete_multipart_upload, **late, IfNoneMatch="*") == (412, "PreconditionFailed")
    assert [one["UploadId"] for one in client.list_multipart_uploads(Bucket=LAKE)["Uploads"]] == [late["UploadId"]]
    assert answer(client.abort_multipart_upload, Key=KEY, UploadId=late["UploadId"]) == (204, None)
    assert client.get_object(Bucket=LAKE, Key=KEY)["Body"].read() == b"rows"


def test_missing_things_are_missing(client: S3Client) -> None:
    """Missing objects are reported as such; deleting a missing key is no error."""
    assert answer(client.get_object, Key=KEY) == (404, "NoSuchKey")
    assert answer(client.delete_object, Key=KEY) == (204, None)
    assert "Contents" not in client.list_objects_v2(Bucket=LAKE, Prefix="a")


def test_the_known_differences_are_all_that_matter_to_us(server: EmbeddedS3, client: S3Client) -> None:
    """SeaweedFS refuses a replacement of nothing as one of another version, aborts an upload twice, and lists the keys
    of each folder together. docs/campaign.md describes this.
    """
    is_moto = isinstance(server._backend, Moto)
    refused = (404, "NoSuchKey") if is_moto else (412, "PreconditionFailed")
    assert answer(client.put_object, Key=KEY, Body=b"1", IfMatch=STALE) == refused
    begun = client.create_multipart_upload(Bucket=LAKE, Key=KEY)["UploadId"]
    assert answer(client.abort_multipart_upload, Key=KEY, UploadId=begun) == (204, None)
    again = (404, "NoSuchUpload") if is_moto else (204, None)
    assert answer(client.abort_multipart_upload, Key=KEY, UploadId=begun) == again
    for key in ("z-0", "z/0", "z/1"):
        client.put_object(Bucket=LAKE, Key=key, Body=b"")
    found = client.list_objects_v2(Bucket=LAKE, StartAfter="z/0")["Contents"]
    assert [row["Key"] for row in found] == (["z/1"] if is_moto else ["z/1", "z-0"])


def test_a_signature_is_checked(server: EmbeddedS3) -> None:
    """SeaweedFS refuses a client with another secret; moto checks none."""
    other = boto3.session.Session("AKIACLIENT", "another-secret", region_name=REGION)
    config = Config(s3={"addressing_style": "path"}, proxies={})
    stranger = other.client("s3", endpoint_url=server.endpoint, config=config)
    refused = (403, "SignatureDoesNotMatch")
    is_moto = isinstance(server._backend, Moto)
    assert answer(stranger.list_objects_v2) == ((200, None) if is_moto else refused)


@pytest.mark.parametrize("condition", ["IfNoneMatch", "IfMatch"])
def test_one_of_many_writers_wins_however_many_come_at_once(
    server: EmbeddedS3, client: S3Client, condition: str
) -> None:
    """In each round of sixteen one is told so, and the object has its body."""
    with ThreadPoolExecutor(16) as pool:
        for turn in range(3):
            key, wanted = f"slot-{turn}", "*"
            if condition == "IfMatch":
                wanted = client.put_object(Bucket=LAKE, Key=key, Body=b"")["ETag"]

            def write(number: int, key: str = key, wanted: str = wanted) -> tuple[int, str | None]:
                return answer(client.put_object, Key=key, Body=b"%d" % number, **{condition: wanted})

            answers = list(pool.map(write, range(16)))
            assert sorted(status for status, _ in answers) == [200] + [412] * 15
            body = client.get_object(Bucket=LAKE, Key=key)["Body"].read()
            assert body == b"%d" % answers.index((200, None))


def test_a_reset_leaves_nothing(server: EmbeddedS3, client: S3Client) -> None:
    """A reset leaves only the initial buckets."""
    server.fill(LAKE, {"x/y": b"1", KEY: b"2"})
    assert server.keys(LAKE) == (KEY, "x/y")
    server.reset()
    assert server.keys(LAKE) == ()
    assert [one["Name"] for one in client.list_buckets()["Buckets"]] == [LAKE]


def test_many_objects_are_loaded_without_a_request_for_each() -> None:
    """They are as if clients had put them, up to the last one, and dated as the caller says."""
    with SeaweedFS() as backend, EmbeddedS3(buckets=(LAKE,), backend=backend) as s3:
        before = datetime.now(UTC) + timedelta(seconds=3599)
        backend.load(LAKE, [f"t/{number:03}" for number in range(300)], b"body")
        backend.load(LAKE, ["u/later"], b"later" * 100, ahead_s=3600)
        assert s3.keys(LAKE) == (*(f"t/{number:03}" for number in range(300)), "u/later")
        found = s3.client().get_object(Bucket=LAKE, Key="t/299")
        assert (found["ETag"], found["Body"].read()) == (f'"{hashlib.md5(b"body").hexdigest()}"', b"body")  # noqa: S324
        later = s3.client().get_object(Bucket=LAKE, Key="u/later")
        assert later["Body"].read() == b"later" * 100
        assert before <= later["LastModified"] <= before + timedelta(seconds=60)
        s3.client().delete_object(Bucket=LAKE, Key="t/000")
        assert s3.keys(LAKE)[0] == "t/001"


def test_objects_that_the_server_does_not_take_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its shell says so, and goes on."""
    shell = tmp_path / "weed"
    shell.write_text("#!/bin/sh\nread command\necho error: no filer\nread command\n")
    shell.chmod(0o755)
    monkeypatch.setattr(seaweedfs, "_PROGRAM", shell)
    with pytest.raises(RuntimeError, match=r"did not take lake's objects: error: no filer"):
        SeaweedFS().load(LAKE, ["t/0"], b"")
