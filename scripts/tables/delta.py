"""A Delta table on S3, read by deltalake and from its plain files, not by the code that writes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from safewriter.parsing import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mypy_boto3_s3 import S3Client


@dataclass(frozen=True, slots=True)
class TableView:
    """The table at one moment. `orphans` are the keys of data files that no version in its log names."""

    version: int
    rows: int
    files: int
    orphans: tuple[str, ...]


def view(client: S3Client, bucket: str, prefix: str, aws: Mapping[str, str]) -> TableView:
    """Read the table under `prefix`. Version -1 means that there is no table."""
    keys = tuple(_keys(client, bucket, prefix))
    log = [key for key in keys if key.startswith(f"{prefix}/_delta_log/") and key.endswith(".json")]
    paths = {path for key in log for path in named_in(client.get_object(Bucket=bucket, Key=key)["Body"].read())}
    data = [key for key in keys if "/_delta_log/" not in key and not key.endswith("/")]
    orphans = tuple(key for key in data if key.removeprefix(f"{prefix}/") not in paths)
    try:
        table = DeltaTable(f"s3://{bucket}/{prefix}", storage_options=options(aws))
    except TableNotFoundError:
        return TableView(-1, 0, 0, orphans)
    return TableView(table.version(), table.count(), len(table.file_uris()), orphans)


def options(aws: Mapping[str, str]) -> dict[str, str]:
    """Return deltalake's storage options for the S3 of these variables."""
    where = {"AWS_ENDPOINT_URL": aws["AWS_ENDPOINT_URL_S3"]} if "AWS_ENDPOINT_URL_S3" in aws else {}
    token = {name: aws[name] for name in ("AWS_SESSION_TOKEN",) if name in aws}
    return {
        **where,
        **token,
        "AWS_ALLOW_HTTP": "true",
        **{name: aws[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION")},
    }


def _keys(client: S3Client, bucket: str, prefix: str) -> Iterator[str]:
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}/")
    yield from (row["Key"] for page in pages for row in page.get("Contents", ()))


def named_in(commit: bytes) -> Iterator[str]:
    """Yield the paths that a commit adds or removes."""
    for line in commit.splitlines():
        action: dict[str, Any] = parsed(line)
        yield from (unquote(action[kind]["path"]) for kind in ("add", "remove") if kind in action)
