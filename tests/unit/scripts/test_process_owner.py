"""The owner of a command passes on its end, and leaves no process, container or folder once the caller is gone."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import psutil
import pytest

from scripts.provision.place import ROOT
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from pathlib import Path


def owned(*arguments: str) -> subprocess.Popen[bytes]:
    """Start the process owner with pipes for its input and output."""
    command = [sys.executable, "-m", "scripts.process_owner", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def close_when_up(owner: subprocess.Popen[bytes]) -> None:
    """Close the owner's input, as its caller's end does, once the command has printed `up`."""
    assert owner.stdin is not None
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"up\n"
    owner.stdin.close()


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)])
def test_the_end_of_the_command_is_passed_on(script: str, code: int) -> None:
    """The owner returns the command's exit code, or 128 plus the number of its signal."""
    with subprocess.Popen(
        [sys.executable, "-m", "scripts.process_owner", "sh", "-c", script], cwd=ROOT, stdin=subprocess.PIPE
    ) as owner:
        assert owner.wait(30) == code


def test_the_end_of_input_ends_the_command() -> None:
    """When the caller closes the input, the command is killed, and the exit code is 0."""
    with owned("sh", "-c", "echo up; sleep 300") as owner:
        close_when_up(owner)
        assert owner.wait(30) == 0


def test_no_process_of_the_command_sees_another_one_end() -> None:
    """All are stopped before the first is killed: none has time to complain of the loss of its peer."""
    reader = "echo up; read line; echo alone"
    code = f"""
import subprocess
idle = [subprocess.Popen(["sleep", "300"]) for _ in range(100)]
subprocess.Popen(["sh", "-c", {reader!r}], stdin=subprocess.PIPE).wait()
"""
    with owned(sys.executable, "-c", code) as owner:
        close_when_up(owner)
        assert owner.stdout is not None
        assert owner.stdout.read() == b""
        assert owner.wait(30) == 0


def test_the_command_knows_the_counter_of_its_limit() -> None:
    """The owner keeps the limit, and gives the command the place of the count."""
    eat = "held = b'x' * (400 << 20); input()"
    code = f"""
import os, subprocess, sys
eater = subprocess.run([sys.executable, "-c", {eat!r}], stdin=subprocess.PIPE)
print(eater.returncode, open(os.environ["SOAL_MEMORY_KILLS"]).read().strip())
"""
    with owned("--memory-mb", "300", sys.executable, "-c", code) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"-9 oom_kill 1\n"
        assert owner.wait(30) == 0


DOCKER = """#!/bin/sh
echo "$@" >>"$0.log"
if [ "$1" = ps ]; then echo aaa; echo bbb; fi
"""
RECORDED = ["ps --all --quiet --filter label=k=v", "rm --force --volumes aaa bbb"]


@pytest.fixture
def docker(tmp_path: Path) -> Path:
    path = tmp_path / "docker"
    path.write_text(DOCKER)
    path.chmod(0o755)
    return path


def with_containers(docker: Path, folder: Path) -> subprocess.Popen[bytes]:
    """Own a command that has containers and a folder; it prints its id."""
    folder.mkdir()
    options = ("--docker", str(docker), "--containers", "label=k=v", "--folder", str(folder))
    return owned(*options, "sh", "-c", "echo $$; echo up; exec sleep 600")


@pytest.mark.slow
def test_no_process_container_or_folder_outlives_the_input(docker: Path, tmp_path: Path) -> None:
    """Whoever held the input may have been killed."""
    with with_containers(docker, tmp_path / "folder") as owner:
        assert owner.stdout is not None
        command = int(owner.stdout.readline())
        close_when_up(owner)
        assert owner.wait(BUSY_S) == 0
    assert not psutil.pid_exists(command)
    assert docker.with_name("docker.log").read_text().splitlines() == RECORDED
    assert not (tmp_path / "folder").exists()


@pytest.mark.slow
def test_a_command_that_dies_leaves_no_container(docker: Path, tmp_path: Path) -> None:
    """The exit code tells its end; the folder stays, since its log tells the reason."""
    with with_containers(docker, tmp_path / "folder") as owner:
        assert owner.stdout is not None
        psutil.Process(int(owner.stdout.readline())).kill()
        assert owner.wait(BUSY_S) == 137
    assert (tmp_path / "folder").exists()
    assert docker.with_name("docker.log").read_text().splitlines() == RECORDED
