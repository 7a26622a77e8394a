"""The data: places that jobs read and write, places that they only read, and an optional bucket for tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.storage import BucketPart, in_parts, private_bucket

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms

    from infra.config import Config

# The keys of tables and snapshots, below any folder, by which a settler decides. Those of snapshots are whole names
# (safewriter/snapshots), since a folder of a table may be called ml_runs.
_DECISIVE: Final = (
    *(f"{above}{folder}/*" for folder in ("_delta_log", "metadata") for above in ("", "*/")),
    *("_CURRENT", "*/_CURRENT", "*runs/*_run_id=*/run.yaml"),
)
_MANIFESTS: Final = "*manifests/*_run_id=*/manifest"
# The name of a Delta commit is its version, 20 digits. A policy cannot match digits, but it can match a length:
# checkpoints (….checkpoint.json), and commits that a catalog has yet to accept (_commits/…), have longer names.
_COMMITS: Final = f"*_delta_log/{'?' * 20}.json"
_UNLOGGED: Final = (
    "Logs of each request for a file of a table would need a bucket and a retention of their own. Each commit is in its"
    " table's log; who has read rows is for CloudTrail data events, which the account's owner turns on"
)


class Lake(Construct):
    """All places with data."""

    def __init__(self, scope: Construct, name: str, *, config: Config, key: kms.IKey | None) -> None:
        super().__init__(scope, name)
        self._key_arns = config.data_kms_key_arns
        self._written = [BucketPart.of(place) for place in config.data]
        triggers = [] if config.s3_trigger is None else [config.s3_trigger]
        self._read = [BucketPart.of(place) for place in (*config.read_only_data, *triggers)]
        self.bucket: s3.Bucket | None = None
        if config.lake_bucket:
            # Old versions are for people; an undo does not need them, since it only removes files that were added.
            old = s3.LifecycleRule(id="old-versions", noncurrent_version_expiration=Duration.days(30))
            self.bucket = private_bucket(self, "Bucket", key=key, unlogged=_UNLOGGED, lifecycle=[old])
            self._written.insert(0, BucketPart(self.bucket.bucket_arn))
            if config.conditional_commits:
                self._demand_conditions(self.bucket)

    @property
    def is_empty(self) -> bool:
        """Whether there is no place to which a job may write."""
        return not self._written

    @property
    def bucket_arns(self) -> list[str]:
        """Return all buckets with data, each once."""
        return list(dict.fromkeys(place.bucket_arn for place in (*self._written, *self._read)))

    def _demand_conditions(self, bucket: s3.Bucket) -> None:
        """Refuse a commit that would overwrite another, by any sender.

        https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes-enforce.html
        """
        bucket.add_to_resource_policy(
            iam.PolicyStatement(
                sid="CommitsAreConditional",
                effect=iam.Effect.DENY,
                principals=[iam.AnyPrincipal()],
                actions=["s3:PutObject"],
                resources=BucketPart(bucket.bucket_arn).objects(_COMMITS),
                # The parts of a multipart upload carry no condition; the request that completes it does.
                conditions={"Null": {"s3:if-none-match": "true"}, "Bool": {"s3:ObjectCreationOperation": "true"}},
            )
        )

    def job_statements(self) -> list[iam.PolicyStatement]:
        """Return the rights of the job's function: read and write. The guard deletes only its own files."""
        statements: list[iam.PolicyStatement] = []
        for number, place in enumerate(self._written, start=1):
            statements += [
                place.allow_listing(f"ListData{number}"),
                place.allow(
                    f"UseData{number}", ["GetObject", "PutObject", "DeleteObject", "AbortMultipartUpload"], "*"
                ),
            ]
        for number, place in enumerate(self._read, start=1):
            statements += [
                place.allow_listing(f"ListReadOnly{number}"),
                place.allow(f"ReadReadOnly{number}", ["GetObject"], "*"),
            ]
        return [*statements, *self._uploads(), *self._key_statements()]

    def sweeper_statements(self) -> list[iam.PolicyStatement]:
        """Return the sweeper's rights: to read and write logs, metadata and snapshots' pointers, never rows, and to
        delete leftover files of a write to a table or a snapshot.
        """
        statements: list[iam.PolicyStatement] = []
        for number, place in enumerate(self._written, start=1):
            statements += [
                place.allow_listing(f"ListData{number}"),
                place.allow(f"UseLogs{number}", ["GetObject", "PutObject"], *_DECISIVE),
                place.allow(f"ReadManifests{number}", ["GetObject"], _MANIFESTS),
                place.allow(f"RemoveOrphans{number}", ["DeleteObject", "AbortMultipartUpload"], "*"),
            ]
        return [*statements, *self._uploads(), *self._key_statements()]

    def _uploads(self) -> list[iam.PolicyStatement]:
        """Allow listing the unfinished uploads of whole buckets: this action has no condition key `s3:prefix`.

        https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html
        """
        buckets = dict.fromkeys(place.bucket_arn for place in self._written)
        return in_parts("ListUploads", ["s3:ListBucketMultipartUploads"], list(buckets))

    def _key_statements(self) -> list[iam.PolicyStatement]:
        if not self._key_arns:
            return []
        actions = ["kms:Decrypt", "kms:GenerateDataKey"]
        return [
            iam.PolicyStatement(
                sid="UseDataKeys",
                actions=actions,
                resources=list(self._key_arns),
                conditions={
                    "StringLike": {"kms:ViaService": "s3.*.amazonaws.com"}
                },  # a bucket may be in another region
            )
        ]
