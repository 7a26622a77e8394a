"""The commands for images find a Docker client that can build, or their own daemon, and explain failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scripts.image import docker as module
from scripts.image.daemon import Ground, is_own, own_daemon
from scripts.image.docker import Docker, DockerError
from soal.console.problem import Failure

if TYPE_CHECKING:
    from pathlib import Path


def client(folder: Path, version: str, *, has_buildx: bool) -> str:
    folder.mkdir(parents=True)
    program = folder / "docker"
    buildx = "echo buildx" if has_buildx else "exit 1"
    cases = f'--version) echo "Docker version {version}, build 1";; buildx) {buildx};; *) exit 1;;'
    program.write_text(f'#!/bin/sh\ncase "$1" in {cases} esac\n')
    program.chmod(0o755)
    return str(program)


def test_the_first_client_that_can_build_is_taken(tmp_path: Path) -> None:
    """The first client that can build is chosen: a new client cannot without its plug-in, an old one can."""
    new = client(tmp_path / "a", "28.2.2", has_buildx=False)
    old = client(tmp_path / "b", "20.10.24", has_buildx=False)
    with_plug_in = client(tmp_path / "c", "28.2.2", has_buildx=True)
    folders = [str(tmp_path / name) for name in "abc"]
    assert module._builder({"PATH": ":".join(folders)}) == old
    assert module._builder({"PATH": ":".join(reversed(folders))}) == with_plug_in
    with pytest.raises(Failure, match="no docker client that can build") as caught:
        module._builder({"PATH": folders[0]})
    assert new in str(caught.value)


def test_a_command_that_fails_says_what_docker_said(tmp_path: Path) -> None:
    """The error has the command's name and docker's output; an image that docker cannot inspect counts as missing."""
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\necho 'no such image' >&2; exit 1\n")
    program.chmod(0o755)
    docker = Docker(str(program), None, is_own=False)
    with pytest.raises(DockerError, match="docker pull: no such image"):
        docker.read("pull", "x")
    assert not docker.has("x")


def test_an_own_daemon_is_known_by_its_address(tmp_path: Path) -> None:
    """A process that knows only the address recognises our daemon, whose builds use the host's network."""
    ground = Ground.of(tmp_path)
    assert is_own(f"unix://{ground.socket}")
    assert not is_own("unix:///var/run/docker.sock")
    assert not is_own(None)
    assert not ground.answers()


def test_a_daemon_that_is_not_installed_is_named_and_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root on Debian, too, the command only says which package is missing."""
    apt = tmp_path / "apt-get"
    apt.write_text('#!/bin/sh\n: > "$0.called"\n')
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/nowhere")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(Failure, match="no dockerd") as caught, own_daemon(tmp_path):
        pass
    assert "docker.io" in caught.value.todo
    assert [path.name for path in tmp_path.iterdir()] == ["apt-get"]


def test_whoever_is_not_root_is_told_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without root no daemon is started; the error names DOCKER_HOST."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(Failure, match="only root can start one") as caught, own_daemon(tmp_path):
        pass
    assert "DOCKER_HOST" in caught.value.todo
