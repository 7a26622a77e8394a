"""An embedded S3 that restricts each client to its role's policies."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote
from xml.etree import ElementTree as ET

from soal.testing.s3 import Match, Reply, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from soal.testing.s3 import Request
    from tests.support.iam import Access

__all__ = ["Need", "Permissions"]

_ACTIONS = {
    "GetObject": "s3:GetObject",
    "HeadObject": "s3:GetObject",
    "PutObject": "s3:PutObject",
    "CreateMultipartUpload": "s3:PutObject",
    "UploadPart": "s3:PutObject",
    "CompleteMultipartUpload": "s3:PutObject",
    "DeleteObject": "s3:DeleteObject",
    "AbortMultipartUpload": "s3:AbortMultipartUpload",
    "ListParts": "s3:ListMultipartUploadParts",
    "ListObjects": "s3:ListBucket",
    "ListObjectsV2": "s3:ListBucket",
    "HeadBucket": "s3:ListBucket",
    "ListMultipartUploads": "s3:ListBucketMultipartUploads",
    "ListObjectVersions": "s3:ListBucketVersions",
}
_MISSING = 404


@dataclass(frozen=True)
class Need:
    """The permission that a request needs; `role` is the client's access key, `prefix` that of a listing."""

    role: str
    action: str
    resource: str
    prefix: str | None = None

    def met_by(self, access: Access) -> bool:
        """Return whether the policies allow it."""
        context = {} if self.prefix is None else {"s3_prefix": self.prefix}
        return access.may(self.action, self.resource, **context)


@dataclass
class Permissions:
    """What the clients of an `EmbeddedS3` may do, by access key; `needs` records the permissions of their requests.

    As on S3, a missing key is 404 for a client that may list the key as a prefix, and 403 for others (observed on S3:
    https://github.com/kopia/kopia/pull/3072).
    """

    roles: Mapping[str, Access]
    catalog: str | None = None
    """The access key of a catalog's server; neither its requests nor those to the catalog are checked."""
    needs: list[Need] = field(default_factory=list)
    denied: list[Need] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def rule(self) -> Rule:
        """Return the rule that enforces them, for `EmbeddedS3(rules=[…])`."""
        return Rule(Match(), self, times=None)

    def __call__(self, request: Request) -> Reply:
        role = request.access_key or "nobody"
        if self.catalog is not None and (role == self.catalog or request.operation.startswith("Catalog")):
            return request.apply()
        for need in _needs(role, request):
            if not self._allows(need):
                return Reply.error(403, f"not allowed: {need.action} on {need.resource}")
        reply = request.apply()
        if request.operation in ("GetObject", "HeadObject") and reply.status == _MISSING:
            listing = Need(role, "s3:ListBucket", f"arn:aws:s3:::{request.bucket}", request.key)
            if not self._allows(listing):
                return Reply.error(403, "not allowed: s3:ListBucket")
        return reply

    def _allows(self, need: Need) -> bool:
        allowed = need.role in self.roles and need.met_by(self.roles[need.role])
        with self._lock:
            (self.needs if allowed else self.denied).append(need)
        return allowed


def _needs(role: str, request: Request) -> Iterator[Need]:
    bucket = f"arn:aws:s3:::{request.bucket}"
    if request.operation == "DeleteObjects":
        for key in _keys(request.body()):
            yield Need(role, "s3:DeleteObject", f"{bucket}/{key}")
        return
    if request.operation in ("CopyObject", "UploadPartCopy"):
        source = unquote(str(request.environ["HTTP_X_AMZ_COPY_SOURCE"])).partition("?")[0].lstrip("/")
        yield Need(role, "s3:GetObject", f"arn:aws:s3:::{source}")
        yield Need(role, "s3:PutObject", f"{bucket}/{request.key}")
        return
    if "HTTP_X_AMZ_TAGGING" in request.environ:
        # For a PUT with tags: https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html
        yield Need(role, "s3:PutObjectTagging", f"{bucket}/{request.key}")
    # No role may use an operation that is unknown here, so its test fails.
    query = dict(parse_qsl(request.environ.get("QUERY_STRING", ""), keep_blank_values=True))
    resource = f"{bucket}/{request.key}" if request.key else bucket
    yield Need(role, _ACTIONS.get(request.operation, f"s3:{request.operation}?"), resource, query.get("prefix"))


def _keys(body: bytes) -> list[str]:
    text = re.sub(rb'\sxmlns="[^"]+"', b"", body)
    return [str(key.text) for key in ET.fromstring(text).iter("Key")]  # noqa: S314 - of our own client
