"""The S3 actions that handler, guard, Spark and sweeper need, each with the folders in which they need it.

tests/unit/soal/doctor/test_required_actions.py compares this with the requests that they were seen to make.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from safewriter.objects import Location

__all__ = ["JOB", "SWEEPER", "Kind", "Need", "RequestKind", "requests_of"]

Kind = Literal["checkpoints", "scripts", "data"]
_LISTING: Final = "s3:ListBucket"
_OF_BUCKETS: Final = (_LISTING, "s3:ListBucketMultipartUploads")
_PROBE: Final = "soal-doctor"


@dataclass(frozen=True, slots=True)
class Need:
    """An action in folders of a kind of place: of the checkpoint bucket, or of tables; "" is any key.

    A folder may be a pattern of whole keys: of `s3:ListBucket`, since S3 answers 404 of a missing one to whoever has
    that.
    """

    action: str
    kind: Kind
    folders: tuple[str, ...] = ("",)


_TABLE: Final = ("", "_delta_log", "metadata")
_POINTER: Final = "_CURRENT"
"""The one object of snapshots that is no folder."""
_MANIFEST: Final = "manifests/*_run_id=*/manifest"
_RECORD: Final = "runs/*_run_id=*/run.yaml"
_SNAPSHOTS: Final = (_POINTER, _MANIFEST, _RECORD)
_ASKED: Final = ("cancels/*/*", "checkpoints/*.json", "leases/*/*", "locks/*.json", "notes/*/*", "runs/*.json")
JOB: Final = (
    Need("s3:GetObject", "checkpoints", ("cancels", "checkpoints", "leases", "locks", "notes", "runs")),
    Need(
        "s3:PutObject", "checkpoints", ("audit", "checkpoints", "leases", "locks", "notes", "open", "results", "runs")
    ),
    Need("s3:PutObjectTagging", "checkpoints", ("checkpoints", "notes")),
    Need("s3:DeleteObject", "checkpoints", ("open",)),
    Need("s3:ListBucket", "checkpoints", _ASKED),
    Need("s3:GetObject", "scripts"),
    Need("s3:GetObject", "data", (*_TABLE, *_SNAPSHOTS)),
    Need("s3:PutObject", "data", (*_TABLE, *_SNAPSHOTS)),
    Need("s3:DeleteObject", "data"),
    Need("s3:ListBucket", "data", (*_TABLE, _POINTER)),
    Need("s3:ListBucketMultipartUploads", "data"),
)
SWEEPER: Final = (
    Need("s3:GetObject", "checkpoints", ("checkpoints", "leases", "notes", "open")),
    Need("s3:PutObject", "checkpoints", ("audit", "checkpoints", "notes")),
    Need("s3:PutObjectTagging", "checkpoints", ("checkpoints", "notes")),
    Need("s3:DeleteObject", "checkpoints", ("leases", "open")),
    Need("s3:ListBucket", "checkpoints", ("leases", "open", "checkpoints/*.json", "leases/*/*", "notes/*/*")),
    Need("s3:GetObject", "data", ("_delta_log", "metadata", *_SNAPSHOTS)),
    Need("s3:PutObject", "data", ("_delta_log", "metadata", _POINTER, _RECORD)),
    Need("s3:DeleteObject", "data"),
    Need("s3:AbortMultipartUpload", "data"),
    Need("s3:ListBucket", "data", ("", "_delta_log", _MANIFEST)),
    Need("s3:ListBucketMultipartUploads", "data"),
)


@dataclass(frozen=True, slots=True)
class RequestKind:
    """All requests of a kind: `pattern` is the ARN of their resource, `prefix` that of a listing."""

    action: str
    pattern: str
    prefix: str | None = None

    @property
    def resource(self) -> str:
        """One of them, to try."""
        return self.pattern.replace("*", _PROBE)

    @property
    def asked(self) -> str | None:
        """The prefix of that one."""
        return None if self.prefix is None else self.prefix.replace("*", _PROBE)


def requests_of(
    needs: Sequence[Need], places: Sequence[tuple[Kind, Location]], partition: str = "aws"
) -> Iterator[RequestKind]:
    """Yield the requests for each need in each place of its kind; `*` in the key of a place is any name."""
    for kind, place in places:
        bucket = f"arn:{partition}:s3:::{place.bucket}"
        base = f"{place.key.strip('/')}/" if place.key.strip("/") else ""
        for need in (need for need in needs if need.kind == kind):
            for below in (f"{base}{folder}/" if folder else base for folder in need.folders):
                if need.action in _OF_BUCKETS:
                    prefix = below.removesuffix("/") if "*" in below.removeprefix(base) else below
                    yield RequestKind(need.action, bucket, prefix if need.action == _LISTING else None)
                else:
                    folder = below.removeprefix(base).rstrip("/")
                    key = f"{base}{folder}" if folder == _POINTER or "*" in folder else f"{below}*"
                    yield RequestKind(need.action, f"{bucket}/{key}")
