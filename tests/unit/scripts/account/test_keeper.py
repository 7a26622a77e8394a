"""The keeper of a local account removes processes, containers and folder once its input ends or the account dies."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[4]
DOCKER = """#!/bin/sh
echo "$@" >>"$0.log"
if [ "$1" = ps ]; then echo aaa; echo bbb; fi
"""


@pytest.fixture
def docker(tmp_path: Path) -> Path:
    path = tmp_path / "docker"
    path.write_text(DOCKER)
    path.chmod(0o755)
    return path


@pytest.fixture
def keeper(docker: Path, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """It keeps a command that has written its own id, and a folder."""
    folder = tmp_path / "folder"
    folder.mkdir()
    command = ["sh", "-c", f"echo $$ >{tmp_path}/id.new; mv {tmp_path}/id.new {tmp_path}/id; exec sleep 600"]
    words = [sys.executable, "-P", "-m", "scripts.account.keeper", str(docker), "k=v", str(folder), *command]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, env={"PYTHONPATH": str(ROOT)}) as process:
        yield process
        process.kill()


def id_of_command(tmp_path: Path) -> int:
    until = time.monotonic() + BUSY_S
    while not (tmp_path / "id").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    return int((tmp_path / "id").read_text())


@pytest.mark.slow
def test_no_process_container_or_folder_outlives_its_input(
    keeper: subprocess.Popen[bytes], docker: Path, tmp_path: Path
) -> None:
    """Whoever held the input may have been killed."""
    command = id_of_command(tmp_path)
    assert keeper.stdin is not None
    keeper.stdin.close()

    assert keeper.wait(BUSY_S) == 0
    assert not psutil.pid_exists(command)
    asked, removed = docker.with_name("docker.log").read_text().splitlines()
    assert asked == "ps --all --quiet --filter label=k=v"
    assert removed == "rm --force --volumes aaa bbb"
    assert not (tmp_path / "folder").exists()


@pytest.mark.slow
def test_an_account_that_dies_leaves_no_container(
    keeper: subprocess.Popen[bytes], docker: Path, tmp_path: Path
) -> None:
    """The keeper ends with it, and its exit code tells that; the folder has the log, which tells why."""
    psutil.Process(id_of_command(tmp_path)).kill()

    assert keeper.wait(BUSY_S) != 0
    assert (tmp_path / "folder").exists()
    assert "rm --force" in docker.with_name("docker.log").read_text()
