"""The emulated S3 is a server of its own for each test: isolation, ranged reads, multipart, streamed uploads."""

from __future__ import annotations

import http.client

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from soal.testing.s3 import EmbeddedS3

pytestmark = pytest.mark.slow

PART_BYTES = 5 * 1024 * 1024


def test_a_child_finds_it_by_its_environment(s3: EmbeddedS3, monkeypatch: pytest.MonkeyPatch) -> None:
    """boto3 reaches the server with only the given variables."""
    for name, value in s3.environment().items():
        monkeypatch.setenv(name, value)
    client = boto3.session.Session().client("s3")
    client.put_object(Bucket="lake", Key="k", Body=b"1")
    assert s3.keys("lake") == ("k",)


def test_two_instances_share_nothing(s3: EmbeddedS3) -> None:
    """Buckets of the same name on two instances are separate; ending one instance leaves the other."""
    s3.client().put_object(Bucket="lake", Key="ours", Body=b"ours")
    with EmbeddedS3(buckets=["lake"]) as other:
        assert other.endpoint != s3.endpoint
        assert other.keys("lake") == ()
        other.client().put_object(Bucket="lake", Key="theirs", Body=b"theirs")
        other.reset()
        assert other.keys("lake") == ()
    assert s3.client().get_object(Bucket="lake", Key="ours")["Body"].read() == b"ours"
    assert s3.keys("lake") == ("ours",)


def test_a_bucket_of_one_instance_is_unknown_to_another(s3: EmbeddedS3) -> None:
    """An instance does not know a bucket of another one."""
    with EmbeddedS3(buckets=["elsewhere"]), pytest.raises(ClientError) as caught:
        s3.client().list_objects_v2(Bucket="elsewhere")
    assert caught.value.response["Error"]["Code"] == "NoSuchBucket"


def test_after_the_end_nobody_answers() -> None:
    """The end of the block closes the port."""
    with EmbeddedS3() as ended:
        client = ended.client()
        client.list_buckets()
    with pytest.raises(EndpointConnectionError):
        client.list_buckets()


def test_parts_of_an_object_can_be_read(s3: EmbeddedS3) -> None:
    """A ranged read gives the bytes of the range and says so by 206."""
    client = s3.client()
    client.put_object(Bucket="lake", Key="k", Body=b"0123456789")
    answer = client.get_object(Bucket="lake", Key="k", Range="bytes=2-5")
    assert answer["Body"].read() == b"2345"
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 206
    assert answer["ContentRange"] == "bytes 2-5/10"


def test_a_large_object_can_be_written_in_parts(s3: EmbeddedS3) -> None:
    """A multipart upload of two parts reads back whole; an aborted one leaves nothing."""
    client = s3.client()
    upload = client.create_multipart_upload(Bucket="lake", Key="big")["UploadId"]
    tags = [
        client.upload_part(Bucket="lake", Key="big", UploadId=upload, PartNumber=number, Body=body)["ETag"]
        for number, body in ((1, b"a" * PART_BYTES), (2, b"b"))
    ]
    parts = [{"PartNumber": number, "ETag": tag} for number, tag in enumerate(tags, start=1)]
    client.complete_multipart_upload(
        Bucket="lake",
        Key="big",
        UploadId=upload,
        MultipartUpload={"Parts": parts},  # type: ignore[typeddict-item]
    )
    assert client.head_object(Bucket="lake", Key="big")["ContentLength"] == PART_BYTES + 1
    other = client.create_multipart_upload(Bucket="lake", Key="never")["UploadId"]
    client.abort_multipart_upload(Bucket="lake", Key="never", UploadId=other)
    assert s3.keys("lake") == ("big",)
    assert "Uploads" not in client.list_multipart_uploads(Bucket="lake")


def test_a_streamed_upload_is_decoded(s3: EmbeddedS3) -> None:
    """An upload as from Spark's S3 client (Expect, signed aws-chunked) is stored without its framing."""
    signature = "0" * 64
    body = f"5;chunk-signature={signature}\r\nhello\r\n0;chunk-signature={signature}\r\n\r\n".encode()
    connection = http.client.HTTPConnection("127.0.0.1", s3.port, timeout=10)
    headers = {
        "Authorization": f"AWS4-HMAC-SHA256 Credential=AKIACLIENT/20261120/us-east-1/s3/aws4_request, "
        f"SignedHeaders=host, Signature={signature}",
        "Expect": "100-continue",
        "Content-Encoding": "aws-chunked",
        "Content-Length": str(len(body)),
        "x-amz-content-sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
        "x-amz-decoded-content-length": "5",
    }
    connection.request("PUT", "/lake/streamed", body=body, headers=headers)
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 200
    connection.close()
    assert s3.client().get_object(Bucket="lake", Key="streamed")["Body"].read() == b"hello"


def test_a_connection_carries_many_requests(s3: EmbeddedS3) -> None:
    """Responses of every kind (204, HEAD, error, body) keep the connection open and in step."""
    s3.client().put_object(Bucket="lake", Key="k", Body=b"12345")
    authorization = {"Authorization": "AWS4-HMAC-SHA256 Credential=AKIACLIENT/20261120/us-east-1/s3/aws4_request"}
    connection = http.client.HTTPConnection("127.0.0.1", s3.port, timeout=10)
    connection.connect()
    first = connection.sock
    seen = []
    for method, path in (("HEAD", "/lake/k"), ("GET", "/lake/no"), ("DELETE", "/lake/no"), ("GET", "/lake/k")):
        connection.request(method, path, headers=authorization)
        answer = connection.getresponse()
        seen.append((answer.status, answer.getheader("Content-Length"), len(answer.read())))
    assert connection.sock is first
    connection.close()
    assert seen[0] == (200, "5", 0)
    assert seen[1][0] == 404
    assert seen[2][0] == 204
    assert seen[3] == (200, "5", 5)


def test_reset_empties_everything(s3: EmbeddedS3) -> None:
    """After a reset the initial buckets exist, empty, and the trace starts again."""
    s3.client().create_bucket(Bucket="more")
    s3.client().put_object(Bucket="lake", Key="k", Body=b"")
    s3.reset()
    assert s3.keys("lake") == ()
    assert s3.trace() == ()
    assert [row["Name"] for row in s3.observer().list_buckets()["Buckets"]] == ["lake"]
