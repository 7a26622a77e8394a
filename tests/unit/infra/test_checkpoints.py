"""The stack's checkpoint bucket: each role's rights in its folders, and the lifetime of documents, markers, locks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from infra.config import FAILURE_QUEUE_DAYS, Config
from safewriter.record.checkpoints import FINISHED

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised

# As docs/concepts/protocol.md and handler/runs/store.py name them.
FOLDERS = {"checkpoints", "open", "leases", "notes", "audit", "runs", "results", "cancels", "locks"}
JOB = {
    "s3:GetObject": {"checkpoints", "leases", "notes", "runs", "cancels", "locks"},
    "s3:PutObject": {"checkpoints", "open", "leases", "notes", "audit", "runs", "results", "locks"},
    "s3:PutObjectTagging": {"checkpoints", "notes"},
    "s3:DeleteObject": {"open"},
}
SWEEPER = {
    "s3:GetObject": {"checkpoints", "open", "leases", "notes"},
    "s3:PutObject": {"checkpoints", "notes", "audit"},
    "s3:PutObjectTagging": {"checkpoints", "notes"},
    "s3:DeleteObject": {"open", "leases"},
}


def bucket_arn(stack: Synthesised) -> str:
    (name,) = (name for name in stack.of_type("S3::Bucket") if name.startswith("Checkpoints"))
    return f"arn:aws:s3:::{name.lower()}"


def rules(stack: Synthesised) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = stack.the("S3::Bucket", "Checkpoints")["LifecycleConfiguration"]["Rules"]
    return found


@pytest.mark.parametrize(("role", "expected"), [("RuntimeJobRole", JOB), ("SweeperSweepRole", SWEEPER)])
@pytest.mark.parametrize(
    "action", ["s3:GetObject", "s3:PutObject", "s3:PutObjectTagging", "s3:DeleteObject", "s3:DeleteObjectVersion"]
)
def test_a_role_may_do_in_each_folder_what_it_needs_and_no_more(
    plain: Synthesised, role: str, expected: dict[str, set[str]], action: str
) -> None:
    """The job changes documents but never deletes them; it writes results and the audit log but never reads them."""
    access = plain.access(role)

    allowed = {folder for folder in FOLDERS if access.may(action, f"{bucket_arn(plain)}/{folder}/key")}

    assert allowed == expected.get(action, set())
    assert not access.may(action, f"{bucket_arn(plain)}/other/key")


def test_the_job_cannot_list_checkpoints(plain: Synthesised, full: Synthesised) -> None:
    """No statement of the job's role lets it list runs, whatever options are on: any prefix that it may list is a whole
    key, which it has to know.
    """
    for stack in (plain, full):
        access = stack.access("RuntimeJobRole")
        for prefix in ("", *(f"{folder}/{end}" for folder in FOLDERS for end in ("", "sw-", "x/"))):
            assert not access.may("s3:ListBucket", bucket_arn(stack), s3_prefix=prefix)
            assert not access.may("s3:ListBucketVersions", bucket_arn(stack), s3_prefix=prefix)


@pytest.mark.parametrize(
    "key", ["checkpoints/x.json", "leases/x/1", "notes/x/1", "runs/x.json", "cancels/x/1", "locks/x.json"]
)
def test_the_job_is_told_of_a_key_that_it_reads_whether_it_is_there(plain: Synthesised, key: str) -> None:
    """S3 requires this right before it answers 404: without it, absence looks like a missing right."""
    assert plain.access("RuntimeJobRole").may("s3:ListBucket", bucket_arn(plain), s3_prefix=key)
    assert plain.access("RuntimeJobRole").may("s3:GetObject", f"{bucket_arn(plain)}/{key}")


@pytest.mark.parametrize("key", ["checkpoints/x.json", "notes/x/1", "open/x/1", "leases/x/1"])
def test_the_sweeper_is_told_of_a_key_that_it_reads_whether_it_is_there(plain: Synthesised, key: str) -> None:
    """The table alone settles a write without a document, so the document's absence must be certain."""
    assert plain.access("SweeperSweepRole").may("s3:ListBucket", bucket_arn(plain), s3_prefix=key)


@pytest.mark.parametrize(
    ("prefix", "allowed"), [("open/", True), ("leases/", True), ("", False), ("checkpoints/", False), ("runs/", False)]
)
def test_the_sweeper_lists_markers_and_leases_only(plain: Synthesised, prefix: str, allowed: bool) -> None:  # noqa: FBT001 - a column of the table above
    """The sweeper finds open writes, and cannot list finished ones."""
    assert plain.access("SweeperSweepRole").may("s3:ListBucket", bucket_arn(plain), s3_prefix=prefix) is allowed


def test_the_bucket_is_kept_private_and_encrypted(plain: Synthesised) -> None:
    """The bucket has no public access, keeps old versions, and survives the stack."""
    bucket = plain.the("S3::Bucket", "Checkpoints")
    (resource,) = (each for each in plain.template["Resources"].values() if each.get("Properties") == bucket)

    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    assert bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("Retain", "Retain")


def test_requests_without_tls_are_refused(plain: Synthesised) -> None:
    """The bucket's policy denies every request without TLS 1.2 or newer."""
    statements = plain.the("S3::BucketPolicy", "Checkpoints")["PolicyDocument"]["Statement"]

    denied = [(each["Effect"], each["Action"], each["Condition"]) for each in statements]

    assert ("Deny", "s3:*", {"Bool": {"aws:SecureTransport": "false"}}) in denied
    assert ("Deny", "s3:*", {"NumericLessThan": {"s3:TlsVersion": 1.2}}) in denied


def test_documents_outlive_every_queue_that_could_replay_their_event(plain: Synthesised) -> None:
    """An event waits at most 6 hours and its failure 14 days; documents in every folder live longer than both."""
    expiring = {rule["Prefix"]: rule["ExpirationInDays"] for rule in rules(plain) if "ExpirationInDays" in rule}

    assert expiring.pop("leases/") == 1  # an expired lease means the same as none
    assert expiring.keys() == {f"{folder}/" for folder in FOLDERS - {"leases", "locks", "open", "audit"}}
    assert all(days > FAILURE_QUEUE_DAYS for days in expiring.values())
    assert plain.the("SQS::Queue", "Failures")["MessageRetentionPeriod"] == FAILURE_QUEUE_DAYS * 86_400


@pytest.mark.parametrize("folder", ["checkpoints", "notes", "open", "audit"])
def test_what_is_open_its_marker_and_the_audit_log_never_expire(plain: Synthesised, folder: str) -> None:
    """No rule expires the current version of an object there unless the guard has tagged it as finished."""
    tag = dict(zip(("Key", "Value"), FINISHED.split("="), strict=True))
    taking = [
        rule for rule in rules(plain) if "ExpirationInDays" in rule and f"{folder}/x".startswith(rule.get("Prefix", ""))
    ]

    assert all(rule["TagFilters"] == [tag] for rule in taking)
    assert len(taking) == (folder in ("checkpoints", "notes"))


def test_a_lock_s_record_never_expires(plain: Synthesised) -> None:
    """The lock's token must only grow, and an unsettled write must stay in its record."""
    assert not [rule for rule in rules(plain) if rule.get("Prefix") == "locks/" and "ExpirationInDays" in rule]


def test_what_a_script_overwrites_or_deletes_can_be_read_as_long_as_a_document_lives(plain: Synthesised) -> None:
    """Old versions live for checkpoint_days, those of the audit log for ever; only leases and locks, of which a run
    leaves hundreds, expire after a day.
    """
    old = {
        rule["Prefix"]: rule["NoncurrentVersionExpiration"]["NoncurrentDays"]
        for rule in rules(plain)
        if "NoncurrentVersionExpiration" in rule
    }

    assert (old.pop("leases/"), old.pop("locks/")) == (1, 1)
    assert old.keys() == {f"{folder}/" for folder in FOLDERS - {"leases", "locks", "audit"}}
    assert set(old.values()) == {Config().checkpoint_days}
    assert any("AbortIncompleteMultipartUpload" in rule for rule in rules(plain))
    assert any(rule.get("ExpiredObjectDeleteMarker") for rule in rules(plain))
