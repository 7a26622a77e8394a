"""The local S3 and the content of its buckets, for `soal local`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from soal.console.document import document_of
from soal.console.view import View, columns, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_s3 import S3Client

    from soal.local.state import LocalS3


@dataclass(frozen=True, slots=True)
class BucketContent:
    """A bucket, the number of its objects and their total size."""

    name: str
    objects: int
    bytes: int


def content(client: S3Client) -> tuple[BucketContent, ...]:
    """Count the objects of each bucket."""
    return tuple(_count(client, row["Name"]) for row in client.list_buckets()["Buckets"])


def local_view(state: LocalS3 | None, contents: Sequence[BucketContent] = ()) -> View:
    """Show where the local S3 and its Iceberg catalog are, and the size of each bucket."""
    if state is None:
        return View({"running": False}, ("local S3: not running",))
    table = columns("bucket", "objects", "bytes", right=("objects", "bytes"))
    for bucket in contents:
        table.add_row(bucket.name, number(bucket.objects), number(bucket.bytes))
    lines = [Text.assemble("local S3: ", (state.endpoint, "bold"), f" (process {state.pid})")]
    if state.catalog is not None:
        lines.append(Text.assemble("Iceberg catalog `local`: ", (state.catalog, "bold")))
    document = {"running": True, **state.model_dump(exclude_none=True), "buckets": document_of(contents)}
    return View(document, (*lines, table))


def _count(client: S3Client, name: str) -> BucketContent:
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=name)
    sizes = [row["Size"] for page in pages for row in page.get("Contents", ())]
    return BucketContent(name, len(sizes), sum(sizes))
