"""moto and S3Proxy, which share no code, agree except for known differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from soal.testing.s3.embedded import EmbeddedS3
from tests.support.s3_backends import BACKENDS, opened_backend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
    assert answer(client.put_object, Key=KEY, Body=b"1", IfMatch=STALE) == (404, "NoSuchKey")
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
    assert answer(client.abort_multipart_upload, Key=KEY, UploadId=late["UploadId"]) == (404, "NoSuchUpload")
    assert client.get_object(Bucket=LAKE, Key=KEY)["Body"].read() == b"rows"


def test_missing_things_are_missing(client: S3Client) -> None:
    """Missing objects are reported as such; deleting a missing key is no error."""
    assert answer(client.get_object, Key=KEY) == (404, "NoSuchKey")
    assert answer(client.delete_object, Key=KEY) == (204, None)
    assert "Contents" not in client.list_objects_v2(Bucket=LAKE, Prefix="a")


def test_the_known_differences_are_all_that_matter_to_us(server: EmbeddedS3, client: S3Client) -> None:
    """S3Proxy has no tags and no key below another key, unlike S3 and moto. docs/campaign.md describes this."""
    is_moto = server._backend.__class__.__name__ == "Moto"
    tagged = answer(client.put_object, Key=KEY, Body=b"1", Tagging="state=finished")
    assert tagged == ((200, None) if is_moto else (501, "NotImplemented"))
    assert answer(client.put_object, Key="one", Body=b"") == (200, None)
    below = answer(client.put_object, Key="one/two", Body=b"")
    assert below == ((200, None) if is_moto else (500, "InternalError"))


def test_a_reset_leaves_nothing(server: EmbeddedS3, client: S3Client) -> None:
    """A reset leaves only the initial buckets."""
    server.fill(LAKE, {"x/y": b"1", KEY: b"2"})
    assert server.keys(LAKE) == (KEY, "x/y")
    server.reset()
    assert server.keys(LAKE) == ()
    assert [one["Name"] for one in client.list_buckets()["Buckets"]] == [LAKE]
