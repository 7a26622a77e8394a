from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scripts.soal.console.problem import Problem
from scripts.soal.local.place import Home
from scripts.soal.target import checkpoint_bucket, local_target, target

if TYPE_CHECKING:
    from pathlib import Path


def test_without_an_endpoint_and_without_a_local_s3_there_is_a_way_on(tmp_path: Path) -> None:
    """The message names the command and the option."""
    with pytest.raises(Problem) as caught:
        target(None, Home(tmp_path))
    assert caught.value.exit_code == 2
    assert "soal local up" in caught.value.todo
    assert "--endpoint-url" in caught.value.todo


def test_a_given_endpoint_is_reached_with_the_callers_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Key, secret, session token and region of the caller pass."""
    for name, value in (
        ("AWS_ACCESS_KEY_ID", "mine"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_SESSION_TOKEN", "token"),
        ("AWS_DEFAULT_REGION", "eu-west-1"),
    ):
        monkeypatch.setenv(name, value)
    found = target("https://s3.example:9000", Home(tmp_path))
    assert not found.is_local
    assert found.aws == {
        "AWS_ACCESS_KEY_ID": "mine",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_SESSION_TOKEN": "token",
        "AWS_REGION": "eu-west-1",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ENDPOINT_URL_S3": "https://s3.example:9000",
    }


def test_a_given_endpoint_without_credentials_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedded S3's credentials are never sent to somebody else's store."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(Problem, match="credentials") as caught:
        target("http://127.0.0.1:9", Home(tmp_path))
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("url", ["127.0.0.1:9000", "s3://bucket", "http://", ""])
def test_what_is_no_url_is_a_usage_error(tmp_path: Path, url: str) -> None:
    """An endpoint has a scheme and a host."""
    with pytest.raises(Problem, match="not a URL"):
        target(url, Home(tmp_path))


def test_only_a_local_s3_has_a_checkpoint_bucket_of_its_own(tmp_path: Path) -> None:
    """Elsewhere SW_CHECKPOINT_BUCKET must say it, and it wins here too."""
    local, given = local_target("http://127.0.0.1:1"), target("http://127.0.0.1:9", Home(tmp_path))
    assert checkpoint_bucket(local, {}) == "soal-checkpoints"
    assert checkpoint_bucket(given, {}) is None
    assert checkpoint_bucket(given, {"SW_CHECKPOINT_BUCKET": "b"}) == "b"
    assert checkpoint_bucket(local, {"SW_CHECKPOINT_BUCKET": "b"}) == "b"
