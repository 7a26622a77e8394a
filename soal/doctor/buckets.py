"""Findings about buckets, and about the S3 endpoint that holds them.

For a deployed function: retention of documents, open writes, the script. For an endpoint: the checkpoint bucket is
writable, S3 honours conditions, the clocks agree.
"""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from botocore.exceptions import BotoCoreError, ClientError

from safewriter.record.checkpoints import FINISHED
from soal.doctor.deployed import command, not_examined
from soal.doctor.finding import Finding, finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mypy_boto3_s3 import S3Client

    from safewriter.objects import Location

_OF_WRITES: Final = ("checkpoints", "notes")
_RECORDS: Final = ("runs", "results")
_KEPT: Final = ("open", "audit")
_TAG: Final = dict([FINISHED.split("=")])
_SWEPT_AFTER: Final = timedelta(minutes=45)
"""Longer than the pause between two sweeps."""
_LISTED_MAX: Final = 100_000
"""Of markers, which S3 lists by their keys, not by their age: a hundred requests."""
_SKEW_WARN_S: Final = 5
_SKEW_FAIL_S: Final = 60
_PRECONDITION_FAILED: Final = 412


def examine_checkpoints(
    client: Any,  # noqa: ANN401 - a boto3 client
    location: Location,
    replay_days: int | None,
    run_s: int,
) -> Iterator[Finding]:
    """Examine the checkpoint bucket's lifecycle, versions and open writes.

    `replay_days`: how many days after its first delivery a queue can deliver an event again, None if not known.
    `run_s`: how long a run lives at most.
    """
    bucket, prefix = location.bucket, f"{location.key.rstrip('/')}/" if location.key else ""
    rules = _rules(client, bucket)
    expired = [
        folder
        for folder in (*_OF_WRITES, *_KEPT)
        if any(_may_expire_open(rule, f"{prefix}{folder}/") for rule in rules)
    ]
    detail = "open writes, markers and audit log never expire"
    if expired:
        detail = (
            f"{', '.join(expired)}/ expires, also for open writes: without its marker no sweeper finds such a write,"
            " without its document no settler knows whether its commit should stay"
        )
    folders = f"{', '.join(expired)}/, except for objects with the tag {FINISHED}"
    remedy = _change(bucket, f"go without a rule that expires {folders}")
    yield finding("lifecycle", detail, remedy, is_well=not expired)
    days_of = {
        folder: _days(rules, f"{prefix}{folder}/", _TAG if folder in _OF_WRITES else {})
        for folder in (*_OF_WRITES, *_RECORDS)
    }
    yield _retention(bucket, days_of, replay_days)
    if client.get_bucket_versioning(Bucket=bucket).get("Status") != "Enabled":
        remedy = command("s3api", "put-bucket-versioning", bucket=bucket, versioning_configuration="Status=Enabled")
        yield Finding("versions", "warn", "a document overwritten or deleted by mistake is lost", remedy)
    else:
        yield Finding("versions", "ok", "old versions are kept")
    yield _open(client, bucket, f"{prefix}open/", timedelta(seconds=run_s) + _SWEPT_AFTER)


def examine_entry_point(client: Any, script: Location | None) -> Iterator[Finding]:  # noqa: ANN401 - a boto3 client
    """Check that the default script, for events that name none, exists."""
    if script is None:
        yield Finding("script", "ok", "each event names its own")
        return
    try:
        client.head_object(Bucket=script.bucket, Key=script.key)
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("404", "NoSuchKey", "NoSuchBucket"):
            raise
        yield Finding("script", "fail", f"{script} does not exist", f"aws s3 cp YOUR_SCRIPT.py {script}")
        return
    yield Finding("script", "ok", f"{script} exists")


def _retention(bucket: str, days_of: Mapping[str, int | None], replay_days: int | None) -> Finding:
    """Compare after how many days the documents of each folder expire, None for never, with `replay_days`."""
    if replay_days is None:
        why = "for how long an event can be delivered again is not known"
        return not_examined("retention", why, "mend what the findings on alias, events and queues say, and try again")
    short = {folder: days for folder, days in days_of.items() if days is not None and days <= replay_days}
    if short:
        detail = (
            f"{', '.join(short)}/ live for {min(short.values())} days, but an event can be delivered again for"
            f" {replay_days}: its run would be forgotten by then, and its batch written twice"
        )
        remedy = _change(bucket, f"give {', '.join(short)}/ an expiration of more than {replay_days} days")
        return Finding("retention", "fail", detail, remedy)
    if None in days_of.values():
        detail = "documents never expire, so the bucket only grows"
        lasting = ", ".join(folder for folder, days in days_of.items() if days is None)
        remedy = _change(
            bucket,
            f"let {lasting}/ expire after {replay_days + 1} days or more; of {', '.join(_OF_WRITES)}/ only objects with"
            f" the tag {FINISHED}",
        )
        return Finding("retention", "warn", detail, remedy)
    least = min(days for days in days_of.values() if days is not None)
    return Finding(
        "retention", "ok", f"documents live for {least} days, events can come again for {replay_days} at most"
    )


def _change(bucket: str, change: str) -> str:
    """Return the commands that change lifecycle rules. S3 only replaces all rules at once."""
    show = command("s3api", "get-bucket-lifecycle-configuration", bucket=bucket)
    change_rules = command(
        "s3api", "put-bucket-lifecycle-configuration", bucket=bucket, lifecycle_configuration="file://rules.json"
    )
    return f"{show} > rules.json; in that file: {change}; {change_rules}"


def _rules(client: Any, bucket: str) -> list[Mapping[str, Any]]:  # noqa: ANN401 - a boto3 client
    try:
        rules = client.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchLifecycleConfiguration":
            raise
        return []
    return [rule for rule in rules if rule["Status"] == "Enabled"]


def _days(rules: list[Mapping[str, Any]], folder: str, tags: Mapping[str, str]) -> int | None:
    """Return after how many days objects with these tags in a folder expire; None if never."""
    return min(
        (
            int(rule["Expiration"]["Days"])
            for rule in rules
            if "Days" in rule.get("Expiration", {})
            and _tags(rule).items() <= tags.items()
            and not _has_size(rule)
            and folder.startswith(_prefix(rule))
        ),
        default=None,
    )


def _may_expire_open(rule: Mapping[str, Any], folder: str) -> bool:
    """Return whether a rule may delete an untagged object in a folder, whatever its size."""
    expires = not rule.get("Expiration", {}).keys().isdisjoint({"Days", "Date"})
    prefix = _prefix(rule)
    return expires and not _tags(rule) and (folder.startswith(prefix) or prefix.startswith(folder))


def _filters(rule: Mapping[str, Any]) -> Mapping[str, Any]:
    fields = rule.get("Filter", {})
    return {**fields, **fields.get("And", {})}


def _tags(rule: Mapping[str, Any]) -> dict[str, str]:
    fields = _filters(rule)
    tags = [*fields.get("Tags", ()), *([fields["Tag"]] if "Tag" in fields else [])]
    return {tag["Key"]: tag["Value"] for tag in tags}


def _has_size(rule: Mapping[str, Any]) -> bool:
    return any(name.startswith("ObjectSize") for name in _filters(rule))


def _prefix(rule: Mapping[str, Any]) -> str:
    return str(_filters(rule).get("Prefix") or rule.get("Prefix") or "")


def _open(client: Any, bucket: str, prefix: str, old: timedelta) -> Finding:  # noqa: ANN401 - a boto3 client
    """Look for writes that have been open for longer than `old`: none of a run that is alive has."""
    since = datetime.now(UTC) - old
    hours = f"{old / timedelta(hours=1):g} h"
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=bucket, Prefix=prefix, PaginationConfig={"MaxItems": _LISTED_MAX}
    )
    ages = [marker["LastModified"] for page in pages for marker in page.get("Contents", ())]
    count = sum(age < since for age in ages)
    if count == 0 and len(ages) == _LISTED_MAX:
        detail = f"{len(ages)} younger than {hours} were read, and there may be more: does the sweeper run?"
        return Finding("open writes", "warn", detail, f"soal recover --bucket {bucket} --dry-run")
    if count == 0:
        return Finding("open writes", "ok", f"none is older than {hours}")
    detail = f"{count} writes of dead runs wait for settling or clean-up: does the sweeper run?"
    return Finding("open writes", "warn", detail, f"soal recover --bucket {bucket} --dry-run")


def examine_store(client: S3Client, bucket: str | None) -> Iterator[Finding]:
    """Put an object into the checkpoint bucket (or bucket/prefix), try two requests that must fail, delete it."""
    endpoint = client.meta.endpoint_url
    if bucket is None:
        yield Finding(
            "checkpoint bucket", "fail", "SW_CHECKPOINT_BUCKET is not set", "set it to bucket or bucket/prefix"
        )
        return
    name, _, prefix = bucket.removeprefix("s3://").partition("/")
    # The deployed bucket's lifecycle removes old versions in this folder.
    key = f"{prefix.strip('/')}/notes/doctor/{uuid.uuid4().hex}".lstrip("/")
    before = time.time()
    try:
        answer = client.put_object(Bucket=name, Key=key, Body=b"1", IfNoneMatch="*")
    except ClientError as error:
        yield Finding("S3 endpoint", "ok", f"{endpoint} answers")
        remedy = "create it, or allow GetObject, PutObject and DeleteObject there"
        yield Finding("checkpoint bucket", "fail", f"{name}: {error}", remedy)
        return
    except BotoCoreError as error:
        yield Finding("S3 endpoint", "fail", f"{endpoint}: {error}", "start it, or correct --endpoint-url")
        return
    after = time.time()
    yield Finding("S3 endpoint", "ok", f"{endpoint} answers in {(after - before) * 1000:.0f} ms")
    yield Finding("checkpoint bucket", "ok", f"{bucket} can be written with your credentials")
    try:
        yield _conditional(client, name, key)
    finally:
        client.delete_object(Bucket=name, Key=key)
    date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    if date is None:
        yield Finding(
            "clock", "warn", "the store's answers have no Date header", "leases need its clock: use another store"
        )
        return
    served = parsedate_to_datetime(date).timestamp()
    # The header is truncated to seconds, so that a correct clock may be up to 1 s ahead of it.
    yield _clock(max(0.0, served - after, before - served - 1))


def _conditional(client: S3Client, bucket: str, key: str) -> Finding:
    """Test the conditions that every commit needs: the store must refuse a second creation and a stale replacement."""
    tries: tuple[tuple[str, Callable[[], object]], ...] = (
        ("If-None-Match: *", lambda: client.put_object(Bucket=bucket, Key=key, Body=b"2", IfNoneMatch="*")),
        ("If-Match", lambda: client.put_object(Bucket=bucket, Key=key, Body=b"2", IfMatch='"another"')),
    )
    for name, attempt in tries:
        try:
            attempt()
        except ClientError as error:
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            if status == _PRECONDITION_FAILED:
                continue
            return Finding("conditional writes", "fail", f"{name}: {error}", "use a store that answers it with 412")
        return Finding("conditional writes", "fail", f"{name} is ignored: commits could be lost", "use another store")
    return Finding("conditional writes", "ok", "If-None-Match and If-Match are honoured")


def _clock(skew_s: float) -> Finding:
    detail = f"differs by {skew_s:.0f} s from the store's"
    if skew_s < _SKEW_WARN_S:
        return Finding("clock", "ok", detail)
    status: Literal["warn", "fail"] = "warn" if skew_s < _SKEW_FAIL_S else "fail"
    return Finding("clock", status, detail, "synchronise the clock of this machine (NTP)")
