"""A PUT into the bucket `lake` of an emulated S3, and its status as the client sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError, HTTPClientError

if TYPE_CHECKING:
    from soal.testing.s3 import EmbeddedS3

__all__ = ["put"]


def put(s3: EmbeddedS3, key: str = "k", body: bytes = b"0123456789") -> int:
    """Return the status that the client sees, 0 for a closed connection."""
    try:
        answer = s3.client().put_object(Bucket="lake", Key=key, Body=body)
    except ClientError as error:
        return error.response["ResponseMetadata"]["HTTPStatusCode"]
    except HTTPClientError:
        return 0
    return answer["ResponseMetadata"]["HTTPStatusCode"]
