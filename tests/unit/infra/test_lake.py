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


@pytest.mark.parametrize("action", ["GetObject", "PutObject", "DeleteObject", "AbortMultipartUpload"])
def test_a_job_works_below_the_named_prefix_only(plain: Synthesised, action: str) -> None:
    """A job has no access to the rest of the bucket or to another bucket."""
    access = plain.access(JOB)

    assert access.may(f"s3:{action}", f"{TABLES}/t/part-0.parquet")
    assert not access.may(f"s3:{action}", "arn:aws:s3:::my-lake/other/part-0.parquet")
    assert not access.may(f"s3:{action}", "arn:aws:s3:::my-lake/tables-2/part-0.parquet")
    assert not access.may(f"s3:{action}", "arn:aws:s3:::another/tables/part-0.parquet")


@pytest.mark.parametrize("role", [JOB, SWEEPER])
@pytest.mark.parametrize(
    ("prefix", "allowed"),
    [
        *((prefix, True) for prefix in ("tables/", "tables/t", "tables/t/_delta_log/")),
        *((prefix, False) for prefix in ("", "tables", "tables-2", "tables-2/", "other/")),
    ],
)
def test_only_the_named_prefix_is_listed(plain: Synthesised, role: str, prefix: str, *, allowed: bool) -> None:
    """A listing must use the prefix with its slash, or a longer one: `tables` is also the beginning of `tables-2`."""
    assert plain.access(role).may("s3:ListBucket", "arn:aws:s3:::my-lake", s3_prefix=prefix) is allowed


@pytest.mark.parametrize("role", [JOB, SWEEPER])
def test_unfinished_uploads_of_the_named_bucket_can_be_listed(plain: Synthesised, role: str) -> None:
    """S3 has no prefix condition for that action, so it applies to the whole bucket, and to no other."""
    assert plain.access(role).may("s3:ListBucketMultipartUploads", "arn:aws:s3:::my-lake", s3_prefix="tables/t/")
    assert not plain.access(role).may("s3:ListBucketMultipartUploads", "arn:aws:s3:::another")


def test_a_whole_bucket_is_listed_whole(full: Synthesised) -> None:
    """Without a prefix the statement has no condition."""
    assert full.access(JOB).may("s3:ListBucket", "arn:aws:s3:::warehouse")


@pytest.mark.parametrize("role", [JOB, SWEEPER])
@pytest.mark.parametrize(
    "action", ["DeleteObjectVersion", "PutObjectAcl", "PutBucketPolicy", "PutLifecycleConfiguration", "DeleteBucket"]
)
def test_nobody_touches_versions_rights_or_the_bucket_itself(full: Synthesised, role: str, action: str) -> None:
    """No statement has an action with which a role could cover its traces or open the bucket."""
    for arn in ("arn:aws:s3:::warehouse", "arn:aws:s3:::warehouse/t/part-0.parquet"):
        assert not full.access(role).may(f"s3:{action}", arn)


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


def test_the_sweeper_reads_and_writes_logs_and_metadata_but_never_rows(plain: Synthesised) -> None:
    """The sweeper fences and undoes in the log, fences in the metadata, and deletes files; it can neither read nor
    write a data file.
    """
    access = plain.access(SWEEPER)

    for key in (COMMIT, "_delta_log/00000000000000000000.json", "db/t/metadata/00001-0.metadata.json"):
        assert access.may("s3:PutObject", f"{TABLES}/{key}")
        assert access.may("s3:GetObject", f"{TABLES}/{key}")
    for action in ("DeleteObject", "AbortMultipartUpload"):
        assert access.may(f"s3:{action}", f"{TABLES}/t/part-0.parquet")
    for action in ("PutObject", "GetObject"):
        for key in ("t", "ml_runs", "runs", "manifests", "run_id=1", "NOT_CURRENT"):
            assert not access.may(f"s3:{action}", f"{TABLES}/{key}/part-0.parquet")
        assert not access.may(f"s3:{action}", f"{TABLES}/t/rows_CURRENT")
        for key in ("_CURRENT", "snap/_CURRENT", "snap/runs/2026_run_id=1_2/run.yaml"):
            assert access.may(f"s3:{action}", f"{TABLES}/{key}")
    assert access.may("s3:GetObject", f"{TABLES}/snap/manifests/2026_run_id=1/manifest")


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
