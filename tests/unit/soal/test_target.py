"""A command finds its S3: AWS by default, a given endpoint, or --local; credentials never go elsewhere."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import psutil
import pytest

from handler.runs.store import UnreadableRecordError
from safewriter.objects import Location
from soal.console.problem import Problem
from soal.home import Home
from soal.local.state import LocalS3
from soal.target import checkpoint_bucket, checkpoint_store, find_target, local_target, store_errors_as_problems

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def running(home: Home) -> LocalS3:
    """A running local S3, according to its state file."""
    started = psutil.Process().create_time()
    catalog = "http://127.0.0.1:1/rest-catalog"
    state = LocalS3(pid=os.getpid(), started=started, endpoint="http://127.0.0.1:1", buckets=(), catalog=catalog)
    state.write(home.state)
    return state


@pytest.mark.usefixtures("running")
def test_aws_is_the_default(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS is the default even while a local S3 runs, with endpoint and credentials of the AWS configuration."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "https://s3.example:9000")
    found = find_target(None, home, local=False)
    assert (found.endpoint, found.aws, found.catalogs, found.is_local) == (None, {}, {}, False)
    assert found.client().meta.endpoint_url == "https://s3.example:9000"


def test_the_local_s3_is_asked_for(home: Home, running: LocalS3) -> None:
    """--local chooses the local S3 with its Iceberg catalog."""
    found = find_target(None, home, local=True)
    assert (found.endpoint, found.is_local) == (running.endpoint, True)
    assert found.catalogs == {"local": {"type": "rest", "uri": running.catalog}}


def test_a_local_s3_that_does_not_run_is_a_problem(home: Home) -> None:
    """Without a running local S3 the problem names the command that starts one."""
    with pytest.raises(Problem) as caught:
        find_target(None, home, local=True)
    assert caught.value.exit_code == 2
    assert "soal local up" in caught.value.todo


@pytest.mark.usefixtures("running")
def test_two_endpoints_are_refused(home: Home) -> None:
    """The local S3 and an endpoint together are refused."""
    with pytest.raises(Problem, match="--local and --endpoint-url"):
        find_target("http://127.0.0.1:9", home, local=True)


def test_a_given_endpoint_is_reached_with_the_callers_credentials(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Key, secret, session token and region of the caller are used for a given endpoint."""
    for name, value in (
        ("AWS_ACCESS_KEY_ID", "mine"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_SESSION_TOKEN", "token"),
        ("AWS_DEFAULT_REGION", "eu-west-1"),
    ):
        monkeypatch.setenv(name, value)
    found = find_target("https://s3.example:9000", home, local=False)
    assert not found.is_local
    assert found.aws == {
        "AWS_ACCESS_KEY_ID": "mine",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_SESSION_TOKEN": "token",
        "AWS_REGION": "eu-west-1",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ENDPOINT_URL_S3": "https://s3.example:9000",
    }


@pytest.mark.parametrize("endpoint_url", [None, "http://127.0.0.1:9"])
def test_no_credentials_are_a_usage_error(
    home: Home, monkeypatch: pytest.MonkeyPatch, endpoint_url: str | None
) -> None:
    """Without credentials a given endpoint is refused: the local S3's credentials are never sent elsewhere."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(Problem, match="credentials") as caught:
        find_target(endpoint_url, home, local=False).client()
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("url", ["127.0.0.1:9000", "s3://bucket", "http://", ""])
def test_what_is_no_url_is_a_usage_error(home: Home, url: str) -> None:
    """An endpoint has a scheme and a host."""
    with pytest.raises(Problem, match="not a URL"):
        find_target(url, home, local=False)


def test_only_a_local_s3_has_a_checkpoint_bucket_of_its_own(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a local S3 has a default checkpoint bucket; --bucket and SW_CHECKPOINT_BUCKET override it."""
    local, given = local_target("http://127.0.0.1:1"), find_target("http://127.0.0.1:9", home, local=False)
    assert checkpoint_bucket(local) == "soal-checkpoints"
    assert checkpoint_bucket(given) is None
    monkeypatch.setenv("SW_CHECKPOINT_BUCKET", "variable")
    assert [checkpoint_bucket(one) for one in (local, given)] == ["variable"] * 2
    assert [checkpoint_bucket(one, "option") for one in (local, given)] == ["option"] * 2
    assert checkpoint_store(local, "option/team", home).uri("k") == "s3://option/team/k"


def test_without_a_checkpoint_bucket_the_way_on_is_named(home: Home) -> None:
    """Without a checkpoint bucket the problem names the options, and --local only if a local S3 runs."""
    with pytest.raises(Problem) as caught:
        checkpoint_store(find_target(None, home, local=False), None, home)
    assert "--bucket" in caught.value.todo
    assert "SW_CHECKPOINT_BUCKET" in caught.value.todo
    assert "--local" not in caught.value.todo


@pytest.mark.usefixtures("running")
def test_a_local_s3_that_runs_is_named_where_a_bucket_is_missing(home: Home) -> None:
    """If a local S3 runs, the problem suggests --local."""
    with pytest.raises(Problem) as caught:
        checkpoint_store(find_target(None, home, local=False), None, home)
    assert "for the local S3 at http://127.0.0.1:1 give --local" in caught.value.todo


def test_a_bucket_that_cannot_be_one_is_a_usage_error(home: Home) -> None:
    """An invalid bucket name is refused before S3 is asked, whose error would not say which value was wrong."""
    with pytest.raises(Problem, match="UPPER"):
        checkpoint_store(local_target("http://127.0.0.1:1"), "UPPER", home)


def test_stores_share_a_client() -> None:
    """Stores share a client, which takes longer to make than most requests."""
    found = local_target("http://127.0.0.1:1")
    first, second = (found.store(Location(bucket)) for bucket in ("a-bucket", "b-bucket"))
    assert first._client is second._client


def test_a_damaged_record_of_a_run_says_what_to_do() -> None:
    """The bucket and the caller's rights are not to blame."""
    with pytest.raises(Problem, match="no record") as caught, store_errors_as_problems():
        raise UnreadableRecordError("s3://c/runs/1.json is no record")
    assert caught.value.exit_code == 1
    assert caught.value.todo.startswith("restore an earlier version of the object")
