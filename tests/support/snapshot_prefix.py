"""A prefix of snapshots seen from outside: by boto3, SQLite and xxhash, never by the code that has written it."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import xxhash

from tests.support.observed import LAKE, Observed

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

__all__ = ["Published", "SnapshotPrefix"]


@dataclass(frozen=True)
class Published:
    """The snapshot that `_CURRENT` points to: its manifest's rows, and the values of all shards by stored key."""

    manifest_ref: str
    run_id: str
    num_dbs: int
    urls: tuple[str, ...]
    shards: dict[int, dict[bytes, bytes]]

    @property
    def values(self) -> dict[bytes, bytes]:
        return {key: value for rows in self.shards.values() for key, value in rows.items()}


@dataclass(frozen=True)
class SnapshotPrefix(Observed):
    """One prefix of the lake."""

    client: S3Client
    name: str

    @property
    def uri(self) -> str:
        return f"s3://{LAKE}/{self.name}"

    def is_named(self, table: str) -> bool:
        return table == self.uri

    def body(self, uri: str) -> bytes:
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        return self.client.get_object(Bucket=bucket, Key=key)["Body"].read()

    def current(self) -> dict[str, Any] | None:
        """Return the content of `_CURRENT`; None if it is missing or does not point to a snapshot yet."""
        try:
            found: dict[str, Any] = json.loads(self.body(f"{self.uri}/_CURRENT"))
        except self.client.exceptions.NoSuchKey:
            return None
        return found if found["manifest_ref"] is not None else None

    def published(self) -> Published | None:
        """Return the current snapshot after checking all of it: sizes, digests, counts, each file's own integrity."""
        current = self.current()
        if current is None:
            return None
        shards: dict[int, dict[bytes, bytes]] = {}
        with closing(sqlite3.connect(":memory:")) as manifest:
            manifest.deserialize(self.body(current["manifest_ref"]))
            ((run_id, num_dbs, version),) = manifest.execute("SELECT run_id, num_dbs, format_version FROM build_meta")
            assert (run_id, version) == (current["run_id"], 4)
            rows = manifest.execute("SELECT db_id, db_url, row_count, db_bytes, sha256 FROM shards").fetchall()
        for db_id, url, count, size, digest in rows:
            content = self.body(f"{url}/shard.db")
            assert (len(content), hashlib.sha256(content).hexdigest()) == (size, digest)
            with closing(sqlite3.connect(":memory:")) as shard:
                shard.deserialize(content)
                assert shard.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                shards[db_id] = dict(shard.execute("SELECT k, v FROM kv"))
            assert len(shards[db_id]) == count > 0
        return Published(current["manifest_ref"], run_id, num_dbs, tuple(row[1] for row in rows), shards)

    def check_routing(self) -> None:
        """Check that each integer key is in the shard of its digest."""
        found = self.published()
        assert found is not None
        for db_id, rows in found.shards.items():
            for key in rows:
                signed = int.from_bytes(key, "big").to_bytes(8, "little", signed=True)
                assert xxhash.xxh3_64_intdigest(signed) % found.num_dbs == db_id

    def history(self) -> list[object]:
        """The snapshot that readers see; tests could not trust any record of earlier ones."""
        current = self.current()
        return [] if current is None else [current["manifest_ref"]]

    def data(self) -> set[str]:
        """The keys of shards, manifests and unfinished uploads below the prefix."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=LAKE, Prefix=f"{self.name}/")
        keys = {row["Key"] for page in pages for row in page.get("Contents", ())}
        uploads = self.client.list_multipart_uploads(Bucket=LAKE, Prefix=f"{self.name}/").get("Uploads", ())
        found = {key.removeprefix(f"{self.name}/") for key in keys | {row["Key"] for row in uploads}}
        return {key for key in found if key.startswith(("shards/", "manifests/"))}

    def strays(self) -> set[str]:
        """Those keys that the current snapshot does not reference."""
        found = self.published()
        root = f"{self.uri}/"
        if found is None:
            return self.data()
        named = {f"{url.removeprefix(root)}/shard.db" for url in found.urls}
        return self.data() - named - {found.manifest_ref.removeprefix(root)}

    def check(self) -> None:
        """Check that the current snapshot opens and is complete, and that each settled document is true."""
        current = self.current()
        if current is not None:
            self.published()
        for document in self.documents():
            name = document.attempt.prefix.rstrip("-")
            known = {} if current is None else current["published"]
            if document.status == "committed":
                assert document.attempt.commit_version == known[name]["version"]
            elif document.status == "rolled_back":
                assert name not in known
