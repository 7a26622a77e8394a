"""The stack's rights on table data: jobs work below named prefixes only, and the sweeper sees no rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.iam import Access

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised

TABLES = "arn:aws:s3:::my-lake/tables"
JOB, SWEEPER = "RuntimeJobRole", "SweeperSweepRole"
COMMIT = "t/_delta_log/00000000000000000007.json"


@pytest.mark.parametrize("place", ["raw/archive", "raw/in"])
def test_what_is_only_read_is_not_written(full: Synthesised, place: str) -> None:
    """Jobs may list and read read-only data and the place of a trigger."""
    access = full.access(JOB)
    bucket, _, prefix = place.partition("/")

    assert access.may("s3:ListBucket", f"arn:aws:s3:::{bucket}", s3_prefix=f"{prefix}/2026/")
    assert access.may("s3:GetObject", f"arn:aws:s3:::{place}/a.csv")
    for action in ("PutObject", "DeleteObject", "AbortMultipartUpload"):
        assert not access.may(f"s3:{action}", f"arn:aws:s3:::{place}/a.csv")
    assert not full.access(SWEEPER).may("s3:GetObject", f"arn:aws:s3:::{place}/a.csv")


def test_keys_of_the_data_can_be_used(plain: Synthesised, full: Synthesised) -> None:
    """Policies name keys by ARN, for use through S3; without them no role may use any key."""
    (arn,) = (arn for each in full.access(JOB).statements if each.sid == "UseDataKeys" for arn in each.resources)

    for role in (JOB, SWEEPER):
        for action in ("kms:Decrypt", "kms:GenerateDataKey"):
            assert full.access(role).may(action, arn, kms_ViaService="s3.eu-west-1.amazonaws.com")
            assert not full.access(role).may(action, arn, kms_ViaService="sqs.eu-west-1.amazonaws.com")
            assert not full.access(role).may(action, arn)
            assert not plain.access(role).may(action, arn)


@pytest.mark.parametrize(
    ("key", "context", "refused"),
    [
        (COMMIT, {"s3_ObjectCreationOperation": "true"}, True),
        (COMMIT[2:], {"s3_ObjectCreationOperation": "true"}, True),
        (COMMIT, {"s3_ObjectCreationOperation": "true", "s3_if_none_match": "*"}, False),
        (COMMIT, {"s3_ObjectCreationOperation": "false"}, False),
        ("t/_delta_log/00000000000000000007.checkpoint.parquet", {"s3_ObjectCreationOperation": "true"}, False),
        (
            "t/_delta_log/00000000000000000007.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
            {"s3_ObjectCreationOperation": "true"},
            False,
        ),
        ("t/_delta_log/_last_checkpoint", {"s3_ObjectCreationOperation": "true"}, False),
        ("t/part-0.parquet", {"s3_ObjectCreationOperation": "true"}, False),
    ],
)
def test_a_commit_without_a_condition_is_refused_to_everybody(
    full: Synthesised,
    key: str,
    context: dict[str, str],
    refused: bool,  # noqa: FBT001 - a column of the table above
) -> None:
    """The lake's policy denies a PUT that could overwrite a commit; it allows parts of an upload and other objects."""
    document = full.resolved(full.the("S3::BucketPolicy", "Lake")["PolicyDocument"])
    (statement,) = (each for each in document["Statement"] if each.get("Sid") == "CommitsAreConditional")
    (lake,) = (name for name in full.of_type("S3::Bucket") if name.startswith("Lake"))
    everybody = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}

    access = Access.of([{"Statement": [everybody, statement]}])

    assert access.may("s3:PutObject", f"arn:aws:s3:::{lake.lower()}/{key}", **context) is not refused
    assert statement["Principal"] == {"AWS": "*"}


def test_there_is_no_lake_bucket_unless_asked_for(plain: Synthesised) -> None:
    """Without lake_bucket the stack has only the buckets for checkpoints and scripts."""
    assert len(plain.of_type("S3::Bucket")) == 2
