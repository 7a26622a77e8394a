"""Findings about a deployed function's buckets: how long documents live, what is open, whether the script is there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from scripts.soal.doctor.deployed import command
from scripts.soal.doctor.finding import Finding, finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from safewriter.objects import Location

__all__ = ["examine_checkpoints", "examine_entry_point"]

_DOCUMENTS: Final = ("checkpoints", "notes", "runs", "results")
_KEPT: Final = ("open", "audit")
_OLD: Final = timedelta(hours=1)
"""No run lives so long, and the sweeper has come by since."""


def examine_checkpoints(client: Any, where: Location, replay_days: int) -> Iterator[Finding]:  # noqa: ANN401 - a boto3 client
    """Look at the checkpoint bucket's lifecycle, versions and open writes.

    `replay_days`: how many days after its first delivery an event can come again, from queues.
    """
    bucket, prefix = where.bucket, f"{where.key.rstrip('/')}/" if where.key else ""
    rules = _rules(client, bucket)
    expired = [folder for folder in _KEPT if _days(rules, f"{prefix}{folder}/") is not None]
    detail = "markers and audit log never expire"
    if expired:
        detail = f"{', '.join(expired)}/ expires: an open write without a marker is found by nobody"
    remedy = _change(bucket, f"go without a rule that expires {', '.join(expired)}/")
    yield finding("lifecycle", not expired, detail, remedy)
    living = {folder: _days(rules, f"{prefix}{folder}/") for folder in _DOCUMENTS}
    short = {folder: days for folder, days in living.items() if days is not None and days <= replay_days}
    if short:
        detail = (
            f"{', '.join(short)}/ live for {min(short.values())} days, and an event can come again for {replay_days}:"
            " its run would not be known any more, and its batch be written twice"
        )
        remedy = _change(bucket, f"give {', '.join(short)}/ an expiration of more than {replay_days} days")
        yield Finding("retention", "fail", detail, remedy)
    elif None in living.values():
        detail = "documents never expire, so the bucket only grows"
        missing = ", ".join(folder for folder, days in living.items() if days is None)
        remedy = _change(bucket, f"let {missing}/ expire after {replay_days + 1} days or more")
        yield Finding("retention", "warn", detail, remedy)
    else:
        least = min(days for days in living.values() if days is not None)
        yield Finding(
            "retention", "ok", f"documents live for {least} days, events come again for {replay_days} at most"
        )
    if client.get_bucket_versioning(Bucket=bucket).get("Status") != "Enabled":
        remedy = command("s3api", "put-bucket-versioning", bucket=bucket, versioning_configuration="Status=Enabled")
        yield Finding("versions", "warn", "a document that is overwritten or deleted by mistake is gone", remedy)
    else:
        yield Finding("versions", "ok", "old versions are kept")
    yield _open(client, bucket, f"{prefix}open/")


def examine_entry_point(client: Any, script: Location | None) -> Iterator[Finding]:  # noqa: ANN401 - a boto3 client
    """Look whether the script is there that runs for events that name none."""
    if script is None:
        yield Finding("script", "ok", "each event names its own")
        return
    try:
        client.head_object(Bucket=script.bucket, Key=script.key)
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("404", "NoSuchKey", "NoSuchBucket"):
            raise
        yield Finding("script", "fail", f"{script} is not there", f"aws s3 cp YOUR_SCRIPT.py {script}")
        return
    yield Finding("script", "ok", f"{script} is there")


def _change(bucket: str, change: str) -> str:
    """Return the commands that change rules: S3 takes all of them or none."""
    shown = command("s3api", "get-bucket-lifecycle-configuration", bucket=bucket)
    put = command(
        "s3api", "put-bucket-lifecycle-configuration", bucket=bucket, lifecycle_configuration="file://rules.json"
    )
    return f"{shown} > rules.json; in that file: {change}; {put}"


def _rules(client: Any, bucket: str) -> list[Mapping[str, Any]]:  # noqa: ANN401 - a boto3 client
    try:
        found = client.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchLifecycleConfiguration":
            raise
        return []
    return [rule for rule in found if rule["Status"] == "Enabled"]


def _days(rules: list[Mapping[str, Any]], folder: str) -> int | None:
    """Return after how many days an object in a folder expires; None if it never does."""
    return min(
        (
            int(rule["Expiration"]["Days"])
            for rule in rules
            if "Days" in rule.get("Expiration", {}) and not _is_for_some(rule) and folder.startswith(_prefix(rule))
        ),
        default=None,
    )


def _is_for_some(rule: Mapping[str, Any]) -> bool:
    """Whether it is about objects with a tag or a size, which ours do not have."""
    found = rule.get("Filter", {})
    return bool({*found, *found.get("And", {})} - {"Prefix", "And"})


def _prefix(rule: Mapping[str, Any]) -> str:
    found = rule.get("Filter", {})
    return str(found.get("Prefix") or found.get("And", {}).get("Prefix") or rule.get("Prefix") or "")


def _open(client: Any, bucket: str, prefix: str) -> Finding:  # noqa: ANN401 - a boto3 client
    """Look for writes that nobody has settled for longer than a run can live."""
    since = datetime.now(UTC) - _OLD
    listed = client.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", ())
    old = sum(marker["LastModified"] < since for marker in listed)
    if old == 0:
        return Finding("open writes", "ok", "none is older than an hour")
    detail = f"{old} writes of dead runs wait to be settled, or cleaned up after: does the sweeper run?"
    return Finding("open writes", "warn", detail, f"soal recover --bucket {bucket} --dry-run")
