"""The handler serves the role's current credentials to the JVM over HTTP, and only to the bearer of the token."""

from __future__ import annotations

import http.client
import json
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from botocore.credentials import ContainerProvider, CredentialRetrievalError, RefreshableCredentials
from botocore.session import Session

from handler.credentials import credentials_for_java
from tests.support.serving import serving

if TYPE_CHECKING:
    from pathlib import Path

ROLE = {"AWS_ACCESS_KEY_ID": "ASIAROLE", "AWS_SECRET_ACCESS_KEY": "secret/of+role", "AWS_SESSION_TOKEN": "token=="}


@pytest.fixture(autouse=True)
def only_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide this machine's profiles and metadata service."""
    for name in ("AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", *ROLE):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def test_an_aws_client_finds_the_role_by_the_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Botocore's own provider for containers reads them; the variables themselves hold no credentials."""
    for name, value in ROLE.items():
        monkeypatch.setenv(name, value)
    variables = dict(credentials_for_java())
    found = ContainerProvider(environ=variables).load()
    assert found is not None
    assert [found.access_key, found.secret_key, found.token] == list(ROLE.values())
    assert not any(secret in value for secret in ROLE.values() for value in variables.values())


def test_credentials_are_those_of_the_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """This includes a role without variables, whose credentials expire."""
    end = datetime.now(UTC) + timedelta(minutes=40)
    role = RefreshableCredentials("ASIAOTHER", "other", "token", end, dict, "test")
    monkeypatch.setattr(Session, "get_credentials", lambda _: role)
    found = ContainerProvider(environ=dict(credentials_for_java())).load()
    assert found is not None
    assert found.access_key == "ASIAOTHER"
    assert isinstance(found, RefreshableCredentials)  # so it requests them again
    assert found.refresh_needed(refresh_in=41 * 60)
    assert not found.refresh_needed(refresh_in=39 * 60)


@pytest.mark.slow
def test_a_function_without_credentials_says_so() -> None:
    """The client's error contains the answer."""
    with pytest.raises(CredentialRetrievalError, match="404"):
        ContainerProvider(environ=dict(credentials_for_java())).load()


@pytest.mark.parametrize("token", [None, "", "guess"])
def test_nobody_gets_them_without_the_token(monkeypatch: pytest.MonkeyPatch, token: str | None) -> None:
    """A URL that a script fetches for a third party does not reveal them."""
    for name, value in ROLE.items():
        monkeypatch.setenv(name, value)
    address = urlsplit(credentials_for_java()["AWS_CONTAINER_CREDENTIALS_FULL_URI"])
    connection = http.client.HTTPConnection(address.netloc, timeout=10)
    connection.request("GET", address.path, headers={} if token is None else {"Authorization": token})
    answer = connection.getresponse()
    assert answer.status == 403
    assert b"ASIAROLE" not in answer.read()


def test_credentials_that_lambda_renews_reach_a_job_that_outlives_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lambda serves them where no variables hold them; each request of the job gets those of the moment."""
    for name in ROLE:
        monkeypatch.delenv(name, raising=False)

    class Lambda(BaseHTTPRequestHandler):
        number = 0

        def do_GET(self) -> None:
            Lambda.number += 1
            end = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
            keys = {"AccessKeyId": f"ASIA{self.number}", "SecretAccessKey": "s", "Token": "t", "Expiration": end}
            body = json.dumps(keys).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with serving(Lambda) as endpoint:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{endpoint}/credentials")
        variables = dict(credentials_for_java())
        found = [ContainerProvider(environ=variables).load() for _ in range(2)]
    assert [each.access_key for each in found] == ["ASIA1", "ASIA2"]
    assert all(isinstance(each, RefreshableCredentials) for each in found)
