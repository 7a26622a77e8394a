"""Clients of an account on this machine, with none of the caller's own settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from collections.abc import Mapping


def client_of(aws: Mapping[str, str], service: str) -> Any:  # noqa: ANN401 - a boto3 client
    """Return a client with these variables, which asks once."""
    session = boto3.session.Session(
        aws_access_key_id=aws["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=aws["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=aws.get("AWS_SESSION_TOKEN"),
        region_name=aws["AWS_REGION"],
    )
    how = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})
    where = {"endpoint_url": aws["AWS_ENDPOINT_URL"], "verify": aws["AWS_CA_BUNDLE"]}
    return session.client(service, config=how, **where)  # type: ignore[call-overload]
