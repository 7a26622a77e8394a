"""S3 in memory, as boto3's client shows it: `S3ObjectStore` with its retries and its reading back runs on it."""

from __future__ import annotations

import hashlib
import io
from bisect import bisect_left, insort
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from tests.lab.campaign.schedules.simulation import simulation
from tests.lab.campaign.schedules.wire import refusal, send

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["S3", "Client", "Object"]

_KINDS: Final = {"checkpoints": "document", "open": "marker", "notes": "note", "leases": "lease", "audit": "audit"}


@dataclass(frozen=True, slots=True)
class Object:
    """An object as it is stored."""

    body: bytes
    etag: str
    modified_ms: int


class _Body(io.BytesIO):
    def iter_chunks(self, size: int) -> Any:
        return iter(lambda: self.read(size), b"")


class S3:
    """All buckets. `changed` gets bucket, key and new body of each object that has changed; None: it was deleted."""

    def __init__(self, changed: Callable[[str, str, bytes | None], None]) -> None:
        self._changed = changed
        self.objects: dict[str, dict[str, Object]] = {}
        self.keys: dict[str, list[str]] = {}
        self.requests = 0

    def bucket(self, name: str) -> dict[str, Object]:
        """Return the objects of a bucket by their keys."""
        if name not in self.objects:
            self.objects[name], self.keys[name] = {}, []
        return self.objects[name]

    def put(self, bucket: str, key: str, body: bytes, *, none: bool = False, match: str | None = None) -> str:
        """Apply a PUT, and return the ETag. Raises `ClientError` if its condition does not hold."""
        there = self.bucket(bucket).get(key)
        if none and there is not None:
            raise refusal(412, "PreconditionFailed", "PutObject")
        if match is not None:
            if there is None:
                raise refusal(404, "NoSuchKey", "PutObject")
            if there.etag != match:
                raise refusal(412, "PreconditionFailed", "PutObject")
        if there is None:
            insort(self.keys[bucket], key)
        etag = f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'
        self.objects[bucket][key] = Object(body, etag, simulation().now_ms() // 1000 * 1000)  # S3 dates by the second
        self._changed(bucket, key, body)
        return etag

    def delete(self, bucket: str, key: str) -> None:
        """Apply a DELETE."""
        if self.bucket(bucket).pop(key, None) is not None:
            keys = self.keys[bucket]
            del keys[bisect_left(keys, key)]
            self._changed(bucket, key, None)

    def listed(self, bucket: str, prefix: str, after: str) -> list[str]:
        """Return the keys with a prefix behind a key."""
        self.bucket(bucket)
        keys = self.keys[bucket]
        begin = bisect_left(keys, max(prefix, f"{after}\0" if after else ""))
        end = begin
        while end < len(keys) and keys[end].startswith(prefix):
            end += 1
        return keys[begin:end]


class Client:
    """boto3's client of S3, as far as the product uses it."""

    meta: Final = SimpleNamespace(endpoint_url="https://s3.eu-central-1.amazonaws.com")
    """AWS's own server, which nobody asks whether it keeps the conditions of writes."""

    def __init__(self, s3: S3) -> None:
        self._s3 = s3

    def get_object(self, Bucket: str, Key: str) -> Any:  # noqa: N803 - boto3's names, here and below
        def apply() -> Any:
            found = self._s3.bucket(Bucket).get(Key)
            if found is None:
                raise refusal(404, "NoSuchKey", "GetObject")
            return {
                "ContentLength": len(found.body),
                "Body": _Body(found.body),
                "ETag": found.etag,
                "LastModified": _moment(found.modified_ms),
                "ResponseMetadata": {"HTTPHeaders": {"date": _http_date(simulation().now_ms() // 1000)}},
            }

        return self._sent("GetObject", "read", Key, apply)

    def put_object(
        self,
        Bucket: str,  # noqa: N803
        Key: str,  # noqa: N803
        Body: bytes,  # noqa: N803
        IfNoneMatch: str | None = None,  # noqa: N803
        IfMatch: str | None = None,  # noqa: N803
        Tagging: str = "",  # noqa: N803
    ) -> Any:
        def apply() -> Any:
            return {"ETag": self._s3.put(Bucket, Key, Body, none=IfNoneMatch is not None, match=IfMatch)}

        return self._sent("PutObject", kind_of(Key), Key, apply)

    def delete_object(self, Bucket: str, Key: str) -> Any:  # noqa: N803
        return self._sent("DeleteObject", "delete", Key, lambda: self._s3.delete(Bucket, Key))

    def delete_objects(self, Bucket: str, Delete: Any) -> Any:  # noqa: N803
        def apply() -> Any:
            for one in Delete["Objects"]:
                self._s3.delete(Bucket, one["Key"])
            return {}

        return self._sent("DeleteObjects", "delete", str(len(Delete["Objects"])), apply)

    def list_objects_v2(
        self,
        Bucket: str,  # noqa: N803
        Prefix: str,  # noqa: N803
        StartAfter: str = "",  # noqa: N803
        MaxKeys: int = 1000,  # noqa: N803
        ContinuationToken: str = "",  # noqa: N803
    ) -> Any:
        def apply() -> Any:
            objects = self._s3.bucket(Bucket)
            keys = [*self._s3.listed(Bucket, Prefix, ContinuationToken or StartAfter)]
            rows = [
                {"Key": key, "Size": len(objects[key].body), "LastModified": _moment(objects[key].modified_ms)}
                for key in keys[:MaxKeys]
            ]
            more = {"NextContinuationToken": keys[MaxKeys - 1]} if len(keys) > MaxKeys else {}
            return {"Contents": rows, "IsTruncated": bool(more), **more}

        return self._sent("ListObjectsV2", "list", Prefix, apply)

    def list_multipart_uploads(self, **_: Any) -> Any:
        return self._sent("ListMultipartUploads", "list", "", lambda: {"Uploads": [], "IsTruncated": False})

    def _sent(self, operation: str, kind: str, key: str, apply: Callable[[], Any]) -> Any:
        self._s3.requests += 1
        return send(operation, kind, key, apply)


def kind_of(key: str) -> str:
    """Return the kind of a PUT by its key."""
    folder = key.partition("/")[0]
    if "/_delta_log/" in key:
        return "commit"
    return _KINDS.get(folder, "data")


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


@lru_cache(maxsize=1024)
def _http_date(second: int) -> str:
    return format_datetime(datetime.fromtimestamp(second, UTC), usegmt=True)
