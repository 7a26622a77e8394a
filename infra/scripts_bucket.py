"""The job scripts: a bucket of the stack's own, or an existing place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aws_cdk import Duration
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.storage import BucketPart, private_bucket

if TYPE_CHECKING:
    from aws_cdk import aws_iam as iam
    from aws_cdk import aws_kms as kms

    from infra.places import BucketPrefix

_UNLOGGED: Final = (
    "Only people put scripts here, and no role of the stack can. Old versions say what a script was, CloudTrail data"
    " events who has changed it"
)


class Scripts(Construct):
    """The place of the jobs' scripts; `uri` is `bucket` or `bucket/prefix`."""

    def __init__(self, scope: Construct, name: str, *, existing: BucketPrefix | None, key: kms.IKey | None) -> None:
        super().__init__(scope, name)
        if existing is not None:
            self.uri = str(existing)
            self._place = BucketPart.of(existing)
            return
        old = s3.LifecycleRule(id="old-versions", noncurrent_version_expiration=Duration.days(90))
        bucket = private_bucket(self, "Bucket", key=key, unlogged=_UNLOGGED, lifecycle=[old])
        self.uri = bucket.bucket_name
        self._place = BucketPart(bucket.bucket_arn)

    @property
    def bucket_arns(self) -> list[str]:
        """Return the ARN of the bucket with the scripts."""
        return [self._place.bucket_arn]

    def job_statements(self) -> list[iam.PolicyStatement]:
        """Return the rights of the job's function here: to read objects by name, without listing."""
        return [self._place.allow("ReadScripts", ["GetObject"], "*")]
