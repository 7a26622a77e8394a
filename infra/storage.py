"""Buckets of the stack, and statements that let a role at a part of a bucket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import Acknowledgment, Aws, Duration, RemovalPolicy, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from aws_cdk import aws_kms as kms
    from constructs import Construct

    from infra.places import BucketPrefix

__all__ = ["Place", "private_bucket"]


@dataclass(frozen=True, slots=True)
class Place:
    """A bucket, or all of it below `prefix` (without slashes at its ends), as policies name it."""

    bucket_arn: str
    prefix: str = ""

    @classmethod
    def of(cls, named: BucketPrefix) -> Place:
        """Return the place of a bucket that is not the stack's."""
        return cls(f"arn:{Aws.PARTITION}:s3:::{named.bucket}", named.prefix)

    def objects(self, *patterns: str) -> list[str]:
        """Return the ARNs of keys below the prefix."""
        base = f"{self.bucket_arn}/{self.prefix}" if self.prefix else self.bucket_arn
        return [f"{base}/{pattern}" for pattern in patterns]

    def allow(self, sid: str, actions: Iterable[str], *patterns: str) -> iam.PolicyStatement:
        """Allow actions on objects."""
        return iam.PolicyStatement(sid=sid, actions=_s3(actions), resources=self.objects(*patterns))

    def allow_listing(self, sid: str, actions: Iterable[str], *folders: str) -> iam.PolicyStatement:
        """Allow actions on the bucket, as far as they ask for keys below the prefix, or below `folders` of it.

        S3 also answers 404 instead of 403 for a missing key there: what may be listed may be known.
        """
        below = [f"{self.prefix}/{folder}".strip("/") for folder in folders] or [self.prefix]
        prefixes = [pattern for folder in below if folder for pattern in (folder, f"{folder}/*")]
        return iam.PolicyStatement(
            sid=sid,
            actions=_s3(actions),
            resources=[self.bucket_arn],
            conditions={"StringLike": {"s3:prefix": prefixes}} if prefixes else None,
        )


def _s3(actions: Iterable[str]) -> list[str]:
    return [f"s3:{action}" for action in actions]


def private_bucket(
    scope: Construct, name: str, *, key: kms.IKey | None, lifecycle: Sequence[s3.LifecycleRule] = ()
) -> s3.Bucket:
    """Make a bucket: private, over TLS only, encrypted, versioned, and kept when the stack is deleted."""
    bucket = s3.Bucket(
        scope,
        name,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        bucket_key_enabled=True if key is not None else None,
        encryption=s3.BucketEncryption.S3_MANAGED if key is None else s3.BucketEncryption.KMS,
        encryption_key=key,
        enforce_ssl=True,
        lifecycle_rules=[
            *lifecycle,
            s3.LifecycleRule(id="unfinished-uploads", abort_incomplete_multipart_upload_after=Duration.days(7)),
        ],
        minimum_tls_version=1.2,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        removal_policy=RemovalPolicy.RETAIN,
        versioned=True,
    )
    Validations.of(bucket).acknowledge(
        Acknowledgment(
            id="AwsSolutions::AwsSolutions-S1",
            reason="Who reads what is a question for the account's CloudTrail data events; access logs of a bucket in"
            " which every run renews leases would be larger than the bucket",
        )
    )
    return bucket
