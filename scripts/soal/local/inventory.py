"""What is in the buckets of an S3 endpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

__all__ = ["BucketContent", "content"]


@dataclass(frozen=True, slots=True)
class BucketContent:
    """A bucket, the number of its objects and their size together."""

    name: str
    objects: int
    bytes: int


def content(client: S3Client) -> tuple[BucketContent, ...]:
    """Count what the buckets hold."""
    return tuple(_count(client, row["Name"]) for row in client.list_buckets()["Buckets"])


def _count(client: S3Client, name: str) -> BucketContent:
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=name)
    sizes = [row["Size"] for page in pages for row in page.get("Contents", ())]
    return BucketContent(name, len(sizes), sum(sizes))
