"""Upload complete files: streamed, and only to new keys."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Final, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from safewriter.entropy import unique_id
from safewriter.objects.location import Location
from safewriter.objects.s3 import code_of, failure, may_pass, s3_client

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef

__all__ = ["PAUSES_S", "Uploader", "uploader_of"]

_T = TypeVar("_T")

PAUSES_S: Final = (0.1, 0.5, 2.0)
"""The pauses before each retry of a request. A request that finally fails also fails the task, with all of its rows."""
_PART: Final = 16 << 20
_PARTS_MAX: Final = 10_000
_ANSWER_S: Final = 60.0
"""The read timeout. S3 assembles the parts of a large file before it answers."""
_UPLOAD_FIELD: Final = "soal-upload"
# The errors of a retry if an earlier attempt succeeded and only its answer was lost: then the object exists, and the
# multipart upload has ended.
_DONE_BEFORE: Final = ("PreconditionFailed", "412", "NoSuchUpload")


class Uploader:
    """Uploads to one S3, and retries requests after transient errors.

    Each upload has a new key, so a retry of the whole task never meets an earlier upload.
    """

    def __init__(
        self, client: S3Client, *, part_bytes: int = _PART, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._client = client
        self._part_bytes = part_bytes
        self._sleep = sleep

    def upload(self, path: Path, url: str) -> None:
        """Upload a file. Raises `StoreError` unless the whole object is there."""
        where = Location.parse(url)
        # The token identifies our object. Its ETag cannot: that of an encrypted object is no digest.
        token = unique_id()
        if path.stat().st_size <= self._part_bytes:
            self._create(where, token, partial(self._put, path, where, token))
        else:
            self._in_parts(path, where, token)

    def _put(self, path: Path, where: Location, token: str) -> None:
        with path.open("rb") as file:
            self._client.put_object(
                Bucket=where.bucket, Key=where.key, Body=file, IfNoneMatch="*", Metadata={_UPLOAD_FIELD: token}
            )

    def _in_parts(self, path: Path, where: Location, token: str) -> None:
        client, bucket, key = self._client, where.bucket, where.key
        size = max(self._part_bytes, -(-path.stat().st_size // _PARTS_MAX))
        upload = self._tried(
            where, lambda: client.create_multipart_upload(Bucket=bucket, Key=key, Metadata={_UPLOAD_FIELD: token})
        )["UploadId"]
        try:
            parts: list[CompletedPartTypeDef] = []
            with path.open("rb") as file:
                while body := file.read(size):
                    number = len(parts) + 1
                    part = partial(
                        client.upload_part, Bucket=bucket, Key=key, UploadId=upload, PartNumber=number, Body=body
                    )
                    parts.append({"ETag": self._tried(where, part)["ETag"], "PartNumber": number})
            self._create(
                where,
                token,
                lambda: client.complete_multipart_upload(
                    Bucket=bucket, Key=key, UploadId=upload, MultipartUpload={"Parts": parts}, IfNoneMatch="*"
                ),
            )
        except BaseException:
            with suppress(ClientError, BotoCoreError):  # the upload may be complete; the first error counts
                client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload)
            raise

    def _create(self, where: Location, token: str, request: Callable[[], object]) -> None:
        """Send the request that creates the object; it also succeeds if an earlier attempt has created the object."""

        def once() -> None:
            try:
                request()
            except ClientError as error:
                if code_of(error) not in _DONE_BEFORE or self._token_of(where) != token:
                    raise

        self._tried(where, once)

    def _token_of(self, where: Location) -> str | None:
        try:
            return self._client.head_object(Bucket=where.bucket, Key=where.key)["Metadata"].get(_UPLOAD_FIELD)
        except ClientError as error:
            if code_of(error) == "404":
                return None
            raise

    def _tried(self, where: Location, request: Callable[[], _T]) -> _T:
        for pause_s in (*PAUSES_S, None):
            try:
                return request()
            except (ClientError, BotoCoreError) as error:
                if pause_s is None or not may_pass(error):
                    raise failure("PUT", str(where), error) from error
                self._sleep(pause_s)
        raise AssertionError


@cache
def uploader_of(endpoint: str | None) -> Uploader:
    """Return the uploader of this process. Its tasks share a client, which costs a tenth of a second of CPU to make."""
    return Uploader(s3_client(endpoint=endpoint, read_timeout_s=_ANSWER_S))
