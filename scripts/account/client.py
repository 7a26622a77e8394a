"""Clients of an account by its variables, with none of the caller's own settings but a profile that they name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from safewriter.objects.client import own_answers

if TYPE_CHECKING:
    from collections.abc import Mapping


def client_of(aws: Mapping[str, str], service: str) -> Any:  # noqa: ANN401 - a boto3 client
    """Return a client with these variables. With keys it asks once; with a profile as often as boto3 does."""
    how = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})
    if "AWS_PROFILE" in aws:
        how = Config(ignore_configured_endpoint_urls=True)  # type: ignore[call-arg] # the stubs are behind
    where = {"endpoint_url": aws.get("AWS_ENDPOINT_URL"), "verify": aws.get("AWS_CA_BUNDLE")}
    return own_answers(_session(aws).client(service, config=how, **where))  # type: ignore[call-overload]


def with_keys(aws: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with the keys that a profile has now, for readers that know no profiles."""
    found = _session(aws).get_credentials()
    if found is None:
        return dict(aws)
    keys = found.get_frozen_credentials()
    named = {
        "AWS_ACCESS_KEY_ID": keys.access_key,
        "AWS_SECRET_ACCESS_KEY": keys.secret_key,
        "AWS_SESSION_TOKEN": keys.token,
    }
    return {**aws, **{name: value for name, value in named.items() if value}}


def _session(aws: Mapping[str, str]) -> boto3.session.Session:
    if "AWS_PROFILE" in aws:
        return boto3.session.Session(profile_name=aws["AWS_PROFILE"], region_name=aws["AWS_REGION"])
    return boto3.session.Session(
        aws_access_key_id=aws["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=aws["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=aws.get("AWS_SESSION_TOKEN"),
        region_name=aws["AWS_REGION"],
    )
