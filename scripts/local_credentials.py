"""Variables of a client of an S3 on this machine, which checks no signature; only the endpoint is missing."""

from __future__ import annotations

from typing import Final

__all__ = ["CREDENTIALS", "REGION"]

REGION: Final = "us-east-1"
CREDENTIALS: Final = {
    "AWS_ACCESS_KEY_ID": "AKIACLIENT",
    "AWS_SECRET_ACCESS_KEY": "not-a-secret",
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
}
