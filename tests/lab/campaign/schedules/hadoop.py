"""S3 as Hadoop's client shows it to Java, modelled: its retries, and the conditional PUT of the log store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from safewriter.objects.s3 import code_of, may_pass
from tests.lab.campaign.schedules.log import LAKE, ROOT, key_of, slot_of
from tests.lab.campaign.schedules.simulation import SECOND, simulation

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.campaign.schedules.s3 import Client

__all__ = ["DeniedError", "JavaError", "Objects"]

_TRIES: Final = 5
_PAUSE: Final = SECOND // 10


class JavaError(Exception):
    """An error of Java, as py4j reports it."""


class DeniedError(Exception):
    """S3 denies the only request that was sent."""


@dataclass(frozen=True, slots=True)
class Objects:
    """S3 as Hadoop's client shows it to Java."""

    client: Client

    def get(self, bucket: str, key: str) -> bytes | None:
        """Return an object, or None if there is none. Raises `JavaError`."""

        def once() -> bytes | None:
            try:
                answer = self.client.get_object(Bucket=bucket, Key=key)
            except ClientError as error:
                if code_of(error) == "NoSuchKey":
                    return None
                raise
            body: bytes = answer["Body"].read()
            return body

        found: bytes | None = _tried(once)
        return found

    def put(self, bucket: str, key: str, body: bytes) -> None:
        """Write an object. Raises `JavaError`."""
        _tried(lambda: self.client.put_object(Bucket=bucket, Key=key, Body=body))

    def versions(self, after: int) -> list[tuple[int, int]]:
        """List the versions behind one, with their times in milliseconds. Raises `JavaError`."""
        start = key_of(after) if after >= 0 else ""
        page = _tried(lambda: self.client.list_objects_v2(Bucket=LAKE, Prefix=f"{ROOT}/_delta_log/", StartAfter=start))
        found = ((slot_of(row["Key"]), row["LastModified"]) for row in page["Contents"])
        return [(slot, int(moment.timestamp() * 1000)) for slot, moment in found if slot is not None]

    def create(self, bucket: str, key: str, body: bytes) -> bool:
        """Create an object as `ConditionalPut.java` does; return whether it is there as ours, False for another's.

        Raises `DeniedError` if nothing was sent that S3 has not denied, `JavaError` if the outcome is unknown.
        """
        doubt: Exception | None = None
        for attempt in range(1, _TRIES + 1):
            try:
                self.client.put_object(Bucket=bucket, Key=key, Body=body, IfNoneMatch="*")
            except (ClientError, BotoCoreError) as error:
                doubt = error
            else:
                return True
            there = self.get(bucket, key)
            if there is not None:
                return there == body
            if attempt == 1 and isinstance(doubt, ClientError) and code_of(doubt) == "AccessDenied":
                raise DeniedError(key)
            if not may_pass(doubt):
                break
            simulation().sleep(attempt * _PAUSE)
        raise JavaError(f"PUT {key}: {doubt}")


def _tried(request: Callable[[], Any]) -> Any:
    for attempt in range(1, _TRIES + 1):
        try:
            return request()
        except (ClientError, BotoCoreError) as error:
            if attempt == _TRIES or not may_pass(error):
                raise JavaError(str(error)) from error
        simulation().sleep(attempt * _PAUSE)
    raise AssertionError
