"""The checkpoint bucket: its lifecycle, and the rights of the job and the sweeper in it.

docs/concepts/protocol.md lists its keys; the handler uses `runs/`, `cancels/`, `results/` and `eventlogs/`, turns
use `locks/`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aws_cdk import Duration
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.storage import BucketPart, private_bucket

if TYPE_CHECKING:
    from aws_cdk import aws_iam as iam
    from aws_cdk import aws_kms as kms

# Runs renew their leases, and lock holders their records, every few seconds: each renewal leaves an old version. An
# expired lease means the same as none.
_RENEWED_DAYS: Final = 1
# As safewriter/record/checkpoints.py writes it, FINISHED.
_FINISHED: Final = ("soal", "finished")
_OF_WRITES: Final = ("checkpoints", "notes")
# Patterns of whole keys. Of two levels, the first is a digest of a run's or a write's key: a job that knows this key
# may list the objects below it, which shows the names of the attempts.
_KEYS: Final = {
    **{folder: f"{folder}/*.json" for folder in ("checkpoints", "runs", "locks")},
    **{folder: f"{folder}/*/?*" for folder in ("leases", "notes", "cancels")},
}
_UNLOGGED: Final = (
    "Every run renews its leases here every few seconds: logs would be larger than the bucket. Old versions and the"
    " audit log say what became of a document, CloudTrail data events who has read one"
)


class CheckpointBucket(Construct):
    """Finished documents, which the guard has tagged, live for `days`. Open documents, markers (`open/`) and the audit
    log never expire: without its marker, an open write could not be found.

    Objects that the job overwrites or deletes stay as old versions for `days`, since they are evidence: those of the
    audit log for ever, those of leases and locks for a day.
    """

    def __init__(self, scope: Construct, name: str, *, days: int, key: kms.IKey | None) -> None:
        super().__init__(scope, name)
        finished = [
            s3.LifecycleRule(
                id=f"finished-{folder}",
                prefix=f"{folder}/",
                tag_filters={_FINISHED[0]: _FINISHED[1]},
                expiration=Duration.days(days),
            )
            for folder in _OF_WRITES
        ]
        records = [
            s3.LifecycleRule(
                id=f"old-{folder}",
                prefix=f"{folder}/",
                expiration=None if folder in (*_OF_WRITES, "open") else Duration.days(days),
                noncurrent_version_expiration=Duration.days(days),
            )
            for folder in (*_OF_WRITES, "runs", "cancels", "results", "eventlogs", "open")
        ]
        leases = s3.LifecycleRule(
            id="leases",
            prefix="leases/",
            expiration=Duration.days(_RENEWED_DAYS),
            noncurrent_version_expiration=Duration.days(_RENEWED_DAYS),
        )
        # A lock's record itself never expires: its token must only grow.
        locks = s3.LifecycleRule(
            id="old-locks", prefix="locks/", noncurrent_version_expiration=Duration.days(_RENEWED_DAYS)
        )
        tidy = s3.LifecycleRule(id="delete-markers", expired_object_delete_marker=True)
        self.bucket = private_bucket(
            self, "Bucket", key=key, unlogged=_UNLOGGED, lifecycle=[*finished, *records, leases, locks, tidy]
        )
        self._place = BucketPart(self.bucket.bucket_arn)

    def job_statements(self) -> list[iam.PolicyStatement]:
        """Return the rights of the job's function here: it may neither list nor delete records.

        The rights to list whole keys (`_KEYS`) make S3 answer 404 for a missing key; otherwise it answers 403.
        """
        place = self._place
        return [
            place.allow_asking("AskForDocuments", *_KEYS.values()),
            place.allow(
                "ReadDocuments",
                ["GetObject"],
                *(f"{folder}/*" for folder in ("checkpoints", "leases", "notes", "runs", "cancels", "locks")),
            ),
            place.allow(
                "WriteDocuments",
                ["PutObject"],
                *(f"{folder}/*" for folder in ("open", "leases", "runs", "results", "eventlogs", "audit", "locks")),
            ),
            self._write_what_expires(),
            place.allow("RemoveMarkers", ["DeleteObject"], "open/*"),
        ]

    def sweeper_statements(self) -> list[iam.PolicyStatement]:
        """Return the sweeper's rights here: to find markers and settle. It has no rights on runs and results."""
        place = self._place
        return [
            place.allow_listing("FindMarkers", "open", "leases"),
            place.allow_asking("AskForDocuments", *(_KEYS[folder] for folder in _OF_WRITES)),
            place.allow("ReadDocuments", ["GetObject"], "checkpoints/*", "open/*", "leases/*", "notes/*"),
            place.allow("WriteDocuments", ["PutObject"], "audit/*"),
            self._write_what_expires(),
            place.allow("RemoveMarkers", ["DeleteObject"], "open/*", "leases/*"),
        ]

    def _write_what_expires(self) -> iam.PolicyStatement:
        """Allow both in one statement: repeating the folders would make the longest policy too long."""
        folders = (f"{folder}/*" for folder in _OF_WRITES)
        return self._place.allow("WriteWhatExpires", ["PutObject", "PutObjectTagging"], *folders)
