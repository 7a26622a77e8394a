"""Clients of AWS services with the caller's configuration, and with timeouts for every call."""

from __future__ import annotations

from typing import Any

from botocore.config import Config

from safewriter.objects.client import client_of


def aws_client(service: str, endpoint_url: str | None) -> Any:  # noqa: ANN401 - a boto3 client
    """Return a client; `endpoint_url` None: the endpoint of the caller's configuration, else AWS's."""
    config = Config(connect_timeout=5, read_timeout=30, retries={"total_max_attempts": 5, "mode": "standard"})
    return client_of(service, config, endpoint=endpoint_url)
