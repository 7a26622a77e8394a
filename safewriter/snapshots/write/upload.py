"""Uploads of files that are whole: streamed, and only to keys that are not there."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Final

from botocore.exceptions import BotoCoreError, ClientError

from safewriter.objects.location import Location
from safewriter.objects.store import StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef

__all__ = ["Uploader", "uploader_of"]

_PART: Final = 16 << 20
_PARTS_MAX: Final = 10_000
_ANSWER_S: Final = 60.0
"""S3 puts the parts of a large file together before it answers."""


class Uploader:
    """Uploads to one S3. Each upload has a key of its own, so a retry of the whole never meets an earlier one."""

    def __init__(self, client: S3Client, *, part_bytes: int = _PART) -> None:
        self._client = client
        self._part_bytes = part_bytes

    def upload(self, path: Path, url: str) -> None:
        """Upload a file. Raises `StoreError` if it is not there whole."""
        where = Location.parse(url)
        try:
            if path.stat().st_size <= self._part_bytes:
                with path.open("rb") as file:
                    self._client.put_object(Bucket=where.bucket, Key=where.key, Body=file, IfNoneMatch="*")
            else:
                self._in_parts(path, where)
        except (ClientError, BotoCoreError) as error:
            raise StoreError(f"PUT {url}: {error}") from error

    def _in_parts(self, path: Path, where: Location) -> None:
        size = max(self._part_bytes, -(-path.stat().st_size // _PARTS_MAX))
        upload = self._client.create_multipart_upload(Bucket=where.bucket, Key=where.key)["UploadId"]
        try:
            parts: list[CompletedPartTypeDef] = []
            with path.open("rb") as file:
                while body := file.read(size):
                    number = len(parts) + 1
                    answer = self._client.upload_part(
                        Bucket=where.bucket, Key=where.key, UploadId=upload, PartNumber=number, Body=body
                    )
                    parts.append({"ETag": answer["ETag"], "PartNumber": number})
            self._client.complete_multipart_upload(
                Bucket=where.bucket,
                Key=where.key,
                UploadId=upload,
                MultipartUpload={"Parts": parts},
                IfNoneMatch="*",
            )
        except BaseException:
            with suppress(ClientError, BotoCoreError):  # it may be complete, with a lost answer; the first error counts
                self._client.abort_multipart_upload(Bucket=where.bucket, Key=where.key, UploadId=upload)
            raise


@cache
def uploader_of(endpoint: str | None) -> Uploader:
    """Return the uploader of this process: its tasks share a client, which takes a tenth of a second of CPU to make."""
    from safewriter.objects.s3 import s3_client

    return Uploader(s3_client(endpoint=endpoint, read_timeout_s=_ANSWER_S))
