"""The right that a denied request lacks. AWS names it in most answers, other servers do not, and a HEAD has no text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["lacking"]

_DENIED: Final = ("AccessDenied", "AccessDeniedException", "403")
# Requests whose right has another name.
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/using-with-s3-policy-actions.html
_RIGHTS: Final[Mapping[str, str]] = {
    "CompleteMultipartUpload": "s3:PutObject",
    "CreateMultipartUpload": "s3:PutObject",
    "DeleteObjects": "s3:DeleteObject",
    "HeadObject": "s3:GetObject",
    "Invoke": "lambda:InvokeFunction",
    "ListMultipartUploads": "s3:ListBucketMultipartUploads",
    "ListObjectsV2": "s3:ListBucket",
    "PutObject": "s3:PutObject (and s3:PutObjectTagging, if it gets tags)",
    "UploadPart": "s3:PutObject",
}


def lacking(error: object, service: str, resource: str) -> str:
    """Return what has to be allowed, as the end of a message; nothing for an error that is no denial."""
    if not isinstance(error, ClientError) or str(error.response.get("Error", {}).get("Code", "")) not in _DENIED:
        return ""
    right = _RIGHTS.get(error.operation_name, f"{service}:{error.operation_name}")
    return f". Allow {right} on {resource}"
