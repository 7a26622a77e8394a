"""The server of a local account hides the caller's AWS configuration, and explains a failed start."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from scripts.account.server import Account, bridge_address, environment
from scripts.image.docker import Docker, DockerError
from scripts.provision.account import Programs
from soal.console.problem import Problem

PROGRAMS = Programs(("false",), (), Path("/nowhere"))


def test_no_client_reaches_the_callers_own_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Profiles, keys and settings of the caller stay outside; the rest of his environment does not."""
    for name in (
        "AWS_PROFILE",
        "AWS_SESSION_TOKEN",
        "AWS_ENDPOINT_URL_S3",
        "CDK_DEFAULT_ACCOUNT",
        "SW_CHECKPOINT_BUCKET",
    ):
        monkeypatch.setenv(name, "the-callers")
    monkeypatch.setenv("LANG", "C")

    account = Account(MagicMock(spec=Docker), PROGRAMS, memory_mb=512)
    account.folder = tmp_path
    key = {"AWS_ACCESS_KEY_ID": "AKIAX", "AWS_SECRET_ACCESS_KEY": "not-a-secret"}
    (tmp_path / "administrator.json").write_text(json.dumps(key))

    seen = environment(account.aws)

    assert "the-callers" not in seen.values()
    assert (seen["AWS_ACCESS_KEY_ID"], seen["AWS_CONFIG_FILE"], seen["LANG"]) == ("AKIAX", "/dev/null", "C")


def test_docker_without_a_bridge_is_refused_with_what_to_do() -> None:
    """The daemon that `soal image build` starts has none."""
    docker = MagicMock(spec=Docker)
    docker.read.side_effect = DockerError("docker network: no such network")

    with pytest.raises(Problem, match=r"bridge.*no such network") as raised, Account(docker, PROGRAMS, memory_mb=512):
        pass
    assert "DOCKER_HOST" in raised.value.todo


@pytest.mark.parametrize(
    ("bridge", "address"),
    [('{"Subnet": "172.17.0.0/16"}', "172.17.0.1"), ('{"Subnet": "10.9.0.0/24", "Gateway": "10.9.0.7"}', "10.9.0.7")],
    ids=["made by this daemon", "configured"],
)
def test_the_bridge_of_a_daemon_in_its_first_hour_has_an_address(bridge: str, address: str) -> None:
    """Docker names the gateway only once it has been started again, or where somebody has configured it."""
    assert bridge_address(MagicMock(spec=Docker, **{"read.return_value": bridge})) == address


@pytest.mark.parametrize("stays", [False, True])
def test_a_container_that_is_removed_while_docker_lists_them_is_none_of_a_function(*, stays: bool) -> None:
    """Docker inspects no removed container; one that it still lists and cannot inspect is an error."""
    lists = iter(["gone here", "gone here" if stays else "here"])

    def read(*words: str) -> str:
        if words[0] == "ps":
            return next(lists)
        if words[-1] == "gone":
            raise DockerError("docker inspect: Error: No such object: gone")
        return '["AWS_LAMBDA_FUNCTION_NAME=jobs"]'

    account = Account(MagicMock(spec=Docker, **{"read.side_effect": read}), PROGRAMS, memory_mb=512)
    if stays:
        with pytest.raises(DockerError, match="No such object"):
            account.containers(function="jobs")
    else:
        assert account.containers(function="jobs") == ("here",)


@pytest.mark.slow
def test_a_server_that_does_not_start_says_why_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its last words are in the error; its folder is gone."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    docker = MagicMock(spec=Docker, program="true", environment={"PATH": "/bin:/usr/bin"})
    docker.read.return_value = '{"Subnet": "127.0.0.0/8", "Gateway": "127.0.0.1"}\n'
    programs = Programs(("sh", "-c", "echo no port is free; exit 3"), (), Path("/nowhere"))

    with pytest.raises(Problem, match="no port is free"), Account(docker, programs, memory_mb=512):
        pass
    assert list(tmp_path.iterdir()) == []
