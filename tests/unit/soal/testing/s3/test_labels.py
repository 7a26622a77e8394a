"""The emulator names each HTTP request by its operation (S3, DynamoDB, catalog) and the class of its key."""

from __future__ import annotations

import pytest

from soal.testing.s3.labels import catalog_operation, dynamodb_operation, key_class, operation


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("t/_delta_log/00000000000000000007.json", "delta_log/commit"),
        ("t/_delta_log/00000000000000000010.checkpoint.parquet", "delta_log/checkpoint"),
        ("t/_delta_log/_last_checkpoint", "delta_log/checkpoint"),
        ("t/_delta_log/00000000000000000007.crc", "delta_log/checksum"),
        ("t/_delta_log/", "delta_log/other"),
        ("t/day=1/part-0-x.snappy.parquet", "data"),
        ("t/metadata/00001-u.metadata.json", "iceberg/metadata"),
        ("t/metadata/snap-1-1-u.avro", "iceberg/manifest-list"),
        ("t/metadata/u-m0.avro", "iceberg/manifest"),
        ("checkpoints/k.json", "checkpoint"),
        ("prefix/open/k/n", "marker"),
        ("leases/k/n", "lease"),
        ("notes/k/1", "note"),
        ("runs/abc.json", "run"),
        ("results/r/run_result.json", "result"),
        ("audit/2026/x", "audit"),
        ("jobs/job.py", "other"),
    ],
)
def test_a_key_says_what_it_is_for(key: str, expected: str) -> None:
    """The class of a key follows from the layout of the table or of the checkpoint bucket."""
    assert key_class(key) == expected


@pytest.mark.parametrize(
    ("method", "key", "query", "is_copy", "expected"),
    [
        ("PUT", "k", {}, False, "PutObject"),
        ("PUT", "k", {}, True, "CopyObject"),
        ("PUT", "k", {"uploadId": "u", "partNumber": "1"}, False, "UploadPart"),
        ("PUT", "k", {"uploadId": "u", "partNumber": "1"}, True, "UploadPartCopy"),
        ("PUT", "k", {"tagging": ""}, False, "PUT:tagging"),
        ("POST", "k", {"uploads": ""}, False, "CreateMultipartUpload"),
        ("POST", "k", {"uploadId": "u"}, False, "CompleteMultipartUpload"),
        ("DELETE", "k", {"uploadId": "u"}, False, "AbortMultipartUpload"),
        ("DELETE", "k", {}, False, "DeleteObject"),
        ("GET", "k", {"uploadId": "u"}, False, "ListParts"),
        ("GET", "k", {}, False, "GetObject"),
        ("HEAD", "k", {}, False, "HeadObject"),
        ("POST", "", {"delete": ""}, False, "DeleteObjects"),
        ("GET", "", {"list-type": "2", "prefix": "p"}, False, "ListObjectsV2"),
        ("GET", "", {"prefix": "p"}, False, "ListObjects"),
        ("GET", "", {"uploads": ""}, False, "ListMultipartUploads"),
        ("GET", "", {"versions": ""}, False, "ListObjectVersions"),
        ("GET", "", {"location": ""}, False, "GET:location"),
        ("PUT", "", {}, False, "CreateBucket"),
        ("HEAD", "", {}, False, "HeadBucket"),
    ],
)
def test_a_request_is_named_as_in_the_api_reference(
    method: str, key: str, query: dict[str, str], expected: str, *, is_copy: bool
) -> None:
    """Method, path and query give the name of the operation."""
    assert operation(method, bucket="b", key=key, query=query, is_copy=is_copy) == expected


def test_the_root_lists_buckets() -> None:
    """A request without a bucket asks for the buckets."""
    assert operation("GET", bucket="", key="", query={}, is_copy=False) == "ListBuckets"


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("POST", "v1/namespaces/db/tables/t", "CatalogChange"),
        ("DELETE", "v1/namespaces/db/tables/t", "CatalogChange"),
        ("POST", "v1/namespaces/db/tables/t/metrics", "CatalogRead"),
        ("GET", "v1/config", "CatalogRead"),
        ("HEAD", "v1/namespaces/db/tables/t", "CatalogRead"),
    ],
)
def test_a_request_to_a_catalog_changes_it_or_not(method: str, path: str, expected: str) -> None:
    """The method decides, but a report of metrics changes nothing."""
    assert catalog_operation(method, path) == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [("DynamoDB_20120810.PutItem", "PutItem"), ("AWSGlue.UpdateTable", None), ("", None)],
)
def test_a_request_to_dynamodb_is_named_by_its_header(target: str, expected: str | None) -> None:
    """The operation is in a header, since all DynamoDB requests have the same path."""
    assert dynamodb_operation(target) == expected
