"""An independent reader of Delta tables (deltalake) shows version, rows, live files and orphan files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from scripts.tables.delta import TableView, options, view
from soal.local.names import CREDENTIALS
from soal.testing.s3 import EmbeddedS3

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

SCHEMA = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
CREATE: list[dict[str, Any]] = [
    {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
    {
        "metaData": {
            "id": "t",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(SCHEMA),
            "partitionColumns": [],
            "configuration": {},
            "createdTime": 0,
        }
    },
]


def add(path: str, rows: int) -> dict[str, Any]:
    stats = json.dumps({"numRecords": rows})
    file = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True, "stats": stats}
    return {"add": file}


@pytest.fixture
def s3() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=["lake"]) as running:
        yield running


def put(s3: EmbeddedS3, key: str, actions: list[dict[str, Any]] | None = None) -> None:
    body = b"x" if actions is None else "\n".join(map(json.dumps, actions)).encode()
    s3.observer().put_object(Bucket="lake", Key=key, Body=body)


def seen(s3: EmbeddedS3) -> TableView:
    return view(s3.observer(), "lake", "t", {**CREDENTIALS, "AWS_ENDPOINT_URL_S3": s3.endpoint})


def test_a_table_is_seen_with_its_rows_and_files(s3: EmbeddedS3) -> None:
    """Version, rows and live files come from the log; a removed file belongs to an older version and is no orphan."""
    put(s3, "t/_delta_log/00000000000000000000.json", [*CREATE, add("a%20b.parquet", 3)])
    removed = {"remove": {"path": "a%20b.parquet", "deletionTimestamp": 1, "dataChange": True}}
    put(s3, "t/_delta_log/00000000000000000001.json", [removed, add("c.parquet", 5)])
    put(s3, "t/a b.parquet")
    put(s3, "t/c.parquet")
    assert seen(s3) == TableView(version=1, rows=5, files=1, orphans=())


def test_a_file_that_no_version_names_is_an_orphan(s3: EmbeddedS3) -> None:
    """A data file of a killed write is an orphan."""
    put(s3, "t/_delta_log/00000000000000000000.json", [*CREATE, add("a.parquet", 3)])
    put(s3, "t/a.parquet")
    put(s3, "t/left.parquet")
    assert seen(s3).orphans == ("t/left.parquet",)


def test_files_without_a_table_are_all_orphans(s3: EmbeddedS3) -> None:
    """After a creation that never committed there is no table, and all files are orphans."""
    put(s3, "t/left.parquet")
    assert seen(s3) == TableView(version=-1, rows=0, files=0, orphans=("t/left.parquet",))


def test_a_session_in_aws_itself_has_a_token_and_no_endpoint() -> None:
    """As the keys of a profile that assumes a role."""
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "eu-west-1"}

    assert options({**keys, "AWS_SESSION_TOKEN": "c"}) == {**keys, "AWS_SESSION_TOKEN": "c", "AWS_ALLOW_HTTP": "true"}
