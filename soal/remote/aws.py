"""Clients of AWS services with the caller's configuration, and with timeouts for every call."""

from __future__ import annotations

from typing import Any

import boto3
from botocore.config import Config


def aws_client(service: str, endpoint_url: str | None) -> Any:  # noqa: ANN401 - a boto3 client
    """Return a client; `endpoint_url` None: the endpoint of the caller's configuration, else AWS's."""
    config = Config(connect_timeout=5, read_timeout=30, retries={"total_max_attempts": 5, "mode": "standard"})
    client: Any = boto3.session.Session().client(service, endpoint_url=endpoint_url, config=config)  # type: ignore[call-overload]
    return client
