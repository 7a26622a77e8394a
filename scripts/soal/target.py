"""Which S3 a command talks to: the local one that runs, or a given endpoint with the caller's own credentials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import boto3
from botocore.config import Config

from scripts.local_credentials import CREDENTIALS
from scripts.soal.console.problem import Problem
from scripts.soal.local.background import running
from scripts.soal.local.sample import CHECKPOINTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_s3 import S3Client

    from scripts.soal.local.place import Home

__all__ = ["Target", "checkpoint_bucket", "local_target", "target"]

_DEFAULT_REGION: Final = "us-east-1"


@dataclass(frozen=True, slots=True)
class Target:
    """An S3 endpoint, with the AWS_* variables that reach it. `is_local`: it is the one of `soal local up`."""

    endpoint: str
    aws: Mapping[str, str]
    is_local: bool

    def client(self) -> S3Client:
        """Make a client for it, whose calls end in bounded time."""
        return boto3.session.Session(
            aws_access_key_id=self.aws["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.aws["AWS_SECRET_ACCESS_KEY"],
            aws_session_token=self.aws.get("AWS_SESSION_TOKEN"),
            region_name=self.aws["AWS_REGION"],
        ).client(
            "s3",
            endpoint_url=self.endpoint,
            config=Config(
                s3={"addressing_style": "path"}, connect_timeout=3, read_timeout=10, retries={"total_max_attempts": 1}
            ),
        )


def target(endpoint_url: str | None, home: Home) -> Target:
    """Return the endpoint that was given, else the local one. Raises `Problem` if there is neither."""
    if endpoint_url is not None:
        return _given(endpoint_url)
    state = running(home)
    if state is None:
        raise Problem(
            "no S3 endpoint: none was given, and no local one runs",
            todo="start a local one with `soal local up`, or give --endpoint-url",
        )
    return local_target(state.endpoint)


def local_target(endpoint: str) -> Target:
    """Return an embedded S3 as a target."""
    return Target(endpoint, {**CREDENTIALS, "AWS_ENDPOINT_URL_S3": endpoint}, is_local=True)


def checkpoint_bucket(found: Target, environ: Mapping[str, str]) -> str | None:
    """Return the bucket of the checkpoints: SW_CHECKPOINT_BUCKET, else the sample one of a local S3."""
    return environ.get("SW_CHECKPOINT_BUCKET") or (CHECKPOINTS if found.is_local else None)


def _given(endpoint_url: str) -> Target:
    parts = urlsplit(endpoint_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Problem(f"--endpoint-url {endpoint_url}: not a URL", todo="give it as http(s)://host:port")
    session = boto3.session.Session()
    credentials = session.get_credentials()
    if credentials is None:
        raise Problem(
            "there are no AWS credentials for the endpoint",
            todo="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
        )
    frozen = credentials.get_frozen_credentials()
    region = session.region_name or _DEFAULT_REGION
    aws = {
        "AWS_ACCESS_KEY_ID": str(frozen.access_key),
        "AWS_SECRET_ACCESS_KEY": str(frozen.secret_key),
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_ENDPOINT_URL_S3": endpoint_url,
    }
    return Target(endpoint_url, aws | ({"AWS_SESSION_TOKEN": frozen.token} if frozen.token else {}), is_local=False)
