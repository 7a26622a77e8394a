"""The meaning of an HTTP request: the S3 operation, and the class of its key.

Spark's file names are random and their order varies, so tests name a request by operation, key class and ordinal.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

MUTATING: Final = frozenset(
    {
        "AbortMultipartUpload",
        "CatalogChange",
        "CompleteMultipartUpload",
        "CopyObject",
        "CreateMultipartUpload",
        "DeleteObject",
        "DeleteObjects",
        "PutItem",
        "PutObject",
        "UploadPart",
        "UploadPartCopy",
    }
)

# The first match wins. The checkpoint bucket may have a prefix, so its classes come after the tables'.
_CLASSES: Final = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"(^|/)_delta_log/\d{20}\.json$", "delta_log/commit"),
        (r"(^|/)_delta_log/(\d{20}\.checkpoint|_last_checkpoint|_sidecars/)", "delta_log/checkpoint"),
        (r"(^|/)_delta_log/\d{20}\.crc$", "delta_log/checksum"),
        (r"(^|/)_delta_log(/|$)", "delta_log/other"),
        (r"(^|/)metadata/[^/]+\.metadata\.json$", "iceberg/metadata"),
        (r"(^|/)metadata/snap-[^/]+\.avro$", "iceberg/manifest-list"),
        (r"(^|/)metadata/[^/]+\.avro$", "iceberg/manifest"),
        (r"\.(parquet|orc|avro)$", "data"),
        (r"(^|/)checkpoints/[^/]+\.json$", "checkpoint"),
        (r"(^|/)open/[^/]+/[^/]+$", "marker"),
        (r"(^|/)leases/[^/]+/[^/]+$", "lease"),
        (r"(^|/)notes/[^/]+/[^/]+$", "note"),
        (r"(^|/)runs/[^/]+\.json$", "run"),
        (r"(^|/)results/[^/]+/run_result\.json$", "result"),
        (r"(^|/)audit/", "audit"),
    )
)

# Sub-resources of an object, as the query names them.
_PARTS_OF_AN_OBJECT: Final = ("acl", "attributes", "legal-hold", "retention", "tagging", "torrent")

# Query words of a bucket listing; any other word names a sub-resource of the bucket.
_LISTING: Final = frozenset({"prefix", "delimiter", "marker", "max-keys", "encoding-type", "list-type", "x-id"})


def key_class(key: str) -> str:
    """Return the class of a key, e.g. `data` or `delta_log/commit`; `other` for an unknown one."""
    return next((name for pattern, name in _CLASSES if pattern.search(key)), "other")


def operation(method: str, *, bucket: str, key: str, query: Mapping[str, str], is_copy: bool) -> str:
    """Return the name of the S3 operation as in the API reference; METHOD:resource for an unknown one."""
    if not bucket:
        return "ListBuckets"
    return _object_operation(method, query, is_copy=is_copy) if key else _bucket_operation(method, query)


def catalog_operation(method: str, path: str) -> str:
    """Return the operation of a request to a REST catalog: a change or a read. A report of metrics is a read."""
    return "CatalogChange" if method in {"POST", "PUT", "DELETE"} and not path.endswith("/metrics") else "CatalogRead"


def dynamodb_operation(target: str) -> str | None:
    """Return the DynamoDB operation in the header `target`; None for a request to another service."""
    return target.partition(".")[2] if target.startswith("DynamoDB_") else None


def _object_operation(method: str, query: Mapping[str, str], *, is_copy: bool) -> str:
    part = next((name for name in _PARTS_OF_AN_OBJECT if name in query), None)
    if part is not None:
        return f"{method}:{part}"
    if method == "PUT":
        name = "UploadPart" if "uploadId" in query else "PutObject"
        return {"UploadPart": "UploadPartCopy", "PutObject": "CopyObject"}[name] if is_copy else name
    of_upload, of_object = {
        "POST": ("CompleteMultipartUpload", "POST:object"),
        "DELETE": ("AbortMultipartUpload", "DeleteObject"),
        "GET": ("ListParts", "GetObject"),
    }.get(method, (f"{method}:upload", f"{method}:object"))
    if method == "HEAD":
        return "HeadObject"
    if method == "POST" and "uploads" in query:
        return "CreateMultipartUpload"
    return of_upload if "uploadId" in query else of_object


def _bucket_operation(method: str, query: Mapping[str, str]) -> str:
    if method == "GET":
        if query.get("list-type") == "2":
            return "ListObjectsV2"
        for name, meaning in (("uploads", "ListMultipartUploads"), ("versions", "ListObjectVersions")):
            if name in query:
                return meaning
    if method == "POST" and "delete" in query:
        return "DeleteObjects"
    plain = {"GET": "ListObjects", "HEAD": "HeadBucket", "PUT": "CreateBucket", "DELETE": "DeleteBucket"}
    sub = next((name for name in query if name not in _LISTING), None)
    return plain.get(method, f"{method}:bucket") if sub is None else f"{method}:{sub}"
