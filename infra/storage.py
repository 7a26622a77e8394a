"""Buckets of the stack, and statements that give a role access to a part of a bucket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aws_cdk import Acknowledgment, Aws, Duration, RemovalPolicy, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from aws_cdk import aws_kms as kms
    from constructs import Construct

    from infra.places import BucketPrefix

_RESOURCES_MAX: Final = 16
"""Names of databases and secrets have up to 255 characters, and a managed policy 6,144."""


@dataclass(frozen=True, slots=True)
class BucketPart:
    """A bucket, or its keys below `prefix` (without slashes at its ends), for policies."""

    bucket_arn: str
    prefix: str = ""

    @classmethod
    def of(cls, place: BucketPrefix) -> BucketPart:
        """Return the part of a bucket outside the stack."""
        return cls(f"arn:{Aws.PARTITION}:s3:::{place.bucket}", place.prefix)

    def objects(self, *patterns: str) -> list[str]:
        """Return the ARNs of keys below the prefix."""
        root = f"{self.bucket_arn}/{self.prefix}" if self.prefix else self.bucket_arn
        return [f"{root}/{pattern}" for pattern in patterns]

    def allow(self, sid: str, actions: Iterable[str], *patterns: str) -> iam.PolicyStatement:
        """Allow actions on objects."""
        names = [f"s3:{action}" for action in actions]
        return iam.PolicyStatement(sid=sid, actions=names, resources=self.objects(*patterns))

    def allow_listing(self, sid: str, *folders: str) -> iam.PolicyStatement:
        """Allow listing the keys below the prefix, or below `folders` of it.

        S3 then also answers 404 instead of 403 for a missing key there. A listing must name the folder with its slash:
        without it, the prefix would also match names of neighbours.
        """
        below = [f"{self.prefix}/{folder}".strip("/") for folder in folders] or [self.prefix]
        prefixes = [f"{folder}/*" for folder in below if folder]
        return iam.PolicyStatement(
            sid=sid,
            actions=["s3:ListBucket"],
            resources=[self.bucket_arn],
            conditions={"StringLike": {"s3:prefix": prefixes}} if prefixes else None,
        )

    def allow_asking(self, sid: str, *patterns: str) -> iam.PolicyStatement:
        """Let S3 answer 404 for a missing key, without allowing a listing of the keys.

        S3 answers 404 if the caller may list the bucket with the key as the prefix, and 403 otherwise. So each pattern
        matches only whole keys: a listing with a matching prefix finds only a key that the caller already knew.
        https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
        """
        return iam.PolicyStatement(
            sid=sid,
            actions=["s3:ListBucket"],
            resources=[self.bucket_arn],
            conditions={"StringLike": {"s3:prefix": list(patterns)}},
        )


def in_parts(sid: str, actions: list[str], resources: Sequence[str]) -> list[iam.PolicyStatement]:
    """Allow actions on any number of resources, in several statements, since a statement must fit into one policy."""
    parts = [resources[at : at + _RESOURCES_MAX] for at in range(0, len(resources), _RESOURCES_MAX)]
    return [
        iam.PolicyStatement(sid=sid if number == 1 else f"{sid}{number}", actions=actions, resources=list(statements))
        for number, statements in enumerate(parts, start=1)
    ]


def private_bucket(
    scope: Construct,
    name: str,
    *,
    key: kms.IKey | None,
    unlogged: str,
    lifecycle: Sequence[s3.LifecycleRule] = (),
) -> s3.Bucket:
    """Create a bucket: private, over TLS only, encrypted, versioned, and kept when the stack is deleted.

    `unlogged` says why the bucket has no access logs.
    """
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
    Validations.of(bucket).acknowledge(Acknowledgment(id="AwsSolutions::AwsSolutions-S1", reason=unlogged))
    return bucket
