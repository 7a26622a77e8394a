"""The stack's checkpoint bucket: each role's rights in its folders, and the lifetime of documents, markers, locks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from infra.config import FAILURE_QUEUE_DAYS, Config
from safewriter.record.checkpoints import FINISHED
from tests.support.roles import FOLDERS

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised


def bucket_arn(stack: Synthesised) -> str:
    (name,) = (name for name in stack.of_type("S3::Bucket") if name.startswith("Checkpoints"))
    return f"arn:aws:s3:::{name.lower()}"


def rules(stack: Synthesised) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = stack.the("S3::Bucket", "Checkpoints")["LifecycleConfiguration"]["Rules"]
    return found


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
