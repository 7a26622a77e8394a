"""Listings that S3 returns in more than one page."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import boto3
from botocore.config import Config
from botocore.stub import Stubber

from safewriter.objects import Upload, batches
from safewriter.objects.s3 import S3ObjectStore
from tests.contract.bench import Bench, keys


def test_a_listing_of_many_pages_is_whole(s3: Bench, remote: S3ObjectStore) -> None:
    """A listing of more keys than S3 returns at once, from the beginning and from the middle."""
    expected = [f"k/{number:05}" for number in range(1005)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(s3.put, (f"some/table/{key}" for key in expected)))

    assert keys(remote.list("k/")) == expected
    assert keys(remote.list("", start_after="k/00002")) == expected[3:]
    assert s3.operations().count("ListObjectsV2") == 4


def test_objects_go_by_the_thousand(s3: Bench, remote: S3ObjectStore) -> None:
    """One request deletes a thousand objects, below the store's own prefix."""
    wanted = [f"k/{number:05}" for number in range(1001)]
    s3.server.fill(s3.lake, {f"some/table/{key}": b"" for key in [*wanted, "other"]})

    for batch in batches(wanted):
        remote.delete_all(batch)

    assert s3.operations() == ["DeleteObjects", "DeleteObject"]
    assert s3.server.keys(s3.lake) == ("some/table/other",)


def test_uploads_of_many_pages_are_whole() -> None:
    """The emulated S3 returns all uploads at once, so here the test writes the answers."""
    client = boto3.client("s3", endpoint_url="http://127.0.0.1:9", config=Config(retries={"total_max_attempts": 1}))
    asked = {"Bucket": "lake", "Prefix": "t/data/", "EncodingType": "url"}
    with Stubber(client) as stubber:
        stubber.add_response(
            "list_multipart_uploads",
            {
                "Uploads": [{"Key": "t/data/a", "UploadId": "1"}],
                "IsTruncated": True,
                "NextKeyMarker": "t/data/a",
                "NextUploadIdMarker": "1",
            },
            asked,
        )
        stubber.add_response(
            "list_multipart_uploads",
            {"Uploads": [{"Key": "t/data/b", "UploadId": "2"}], "IsTruncated": False},
            {**asked, "KeyMarker": "t/data/a", "UploadIdMarker": "1"},
        )

        found = list(S3ObjectStore(client, "lake", "t").uploads("data/"))

    assert found == [Upload("data/a", "1"), Upload("data/b", "2")]
