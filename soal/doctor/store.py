"""Findings about an S3 endpoint: the checkpoint bucket can be written, conditions count, the clocks agree."""

from __future__ import annotations

import time
import uuid
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, Literal

from botocore.exceptions import BotoCoreError, ClientError

from soal.doctor.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_s3 import S3Client

__all__ = ["examine_store"]

_SKEW_WARN_S: Final = 5
_SKEW_FAIL_S: Final = 60
_PRECONDITION_FAILED: Final = 412


def examine_store(client: S3Client, bucket: str | None) -> Iterator[Finding]:
    """Write an object into the checkpoint bucket (or bucket/prefix), try two requests that must fail, remove it."""
    endpoint = client.meta.endpoint_url
    if bucket is None:
        yield Finding(
            "checkpoint bucket", "fail", "SW_CHECKPOINT_BUCKET is not set", "set it to bucket or bucket/prefix"
        )
        return
    name, _, prefix = bucket.removeprefix("s3://").partition("/")
    # In a folder where the lifecycle of the deployed bucket removes old versions.
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
        yield Finding("clock", "warn", "the store does not tell the time", "its clock dates leases: use another")
        return
    served = parsedate_to_datetime(date).timestamp()
    # The header has whole seconds: a perfect clock is up to one ahead of it.
    yield _clock(max(0.0, served - after, before - served - 1))


def _conditional(client: S3Client, bucket: str, key: str) -> Finding:
    """Try the conditions that every commit needs: the store must refuse a second creation and a stale change."""
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
