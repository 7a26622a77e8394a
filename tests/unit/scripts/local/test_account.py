"""`soal local up --account` keeps an account in the background: its shell, its state file, its end, its view."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import psutil
import pytest
from typer.testing import CliRunner

from scripts.local import account
from scripts.local.account import (
    LocalAccount,
    account_view,
    ensure_down,
    ensure_up,
    running,
    shell,
    state_of,
    variables_of,
)
from scripts.provision.account import Programs
from soal.console.problem import EXIT_USAGE, Problem
from soal.home import Home
from soal.local.state import write_private
from tests.support.command_line import app

if TYPE_CHECKING:
    from pathlib import Path

AWS = {"AWS_ENDPOINT_URL": "http://172.17.0.1:9", "AWS_ACCESS_KEY_ID": "123456789012"}


def state(pid: int, started: float) -> LocalAccount:
    return LocalAccount(pid=pid, started=started, endpoint="http://172.17.0.1:9", image_uri="a/soal:local", aws=AWS)


def test_a_shell_that_reads_the_variables_leaves_the_callers_account(tmp_path: Path) -> None:
    """Its profile is gone, its `cdk` is the account's, and its own programs stay first but for that."""
    program = tmp_path / "node_modules" / "aws-cdk" / "bin" / "cdk"
    programs = Programs((), ("node", str(program)), tmp_path / "node")
    (tmp_path / "env").write_text(shell(state(1, 1.0), programs))
    asked = f'. {tmp_path}/env; echo "${{AWS_PROFILE:-none}} $AWS_ENDPOINT_URL $IMAGE_URI $PATH"'
    mine = {"AWS_PROFILE": "mine", "PATH": "/usr/bin:/bin"}

    said = subprocess.run(["sh", "-c", asked], env=mine, capture_output=True, text=True, check=True).stdout.split()

    assert said[:3] == ["none", "http://172.17.0.1:9", "a/soal:local"]
    assert said[3] == f"{tmp_path}/node_modules/.bin:/usr/bin:/bin:{tmp_path}/node"


def test_only_its_owner_reads_what_holds_the_administrator_s_key(tmp_path: Path) -> None:
    """Other accounts of the machine may reach the clone."""
    home, own = Home(tmp_path), psutil.Process()
    state(own.pid, own.create_time()).write(state_of(home))
    write_private(variables_of(home), "export AWS_SECRET_ACCESS_KEY=x\n")
    assert [path.stat().st_mode & 0o777 for path in (state_of(home), variables_of(home))] == [0o600, 0o600]


def test_a_state_file_whose_process_has_ended_is_stale(tmp_path: Path) -> None:
    """The kernel gives its number to others."""
    home, own = Home(tmp_path), psutil.Process()
    state(own.pid, own.create_time()).write(state_of(home))
    assert running(home) is not None
    state(own.pid, own.create_time() - 5).write(state_of(home))
    assert running(home) is None


@pytest.mark.slow
def test_down_ends_the_account_and_removes_its_files(tmp_path: Path) -> None:
    """No process and no file of it is left, and the second time there is nothing to end."""
    home = Home(tmp_path)
    with subprocess.Popen(["sleep", "600"]) as process:
        written = state(process.pid, psutil.Process(process.pid).create_time())
        written.write(state_of(home))
        variables_of(home).touch()

        assert ensure_down(home) == written
        process.wait(10)
    assert not state_of(home).exists()
    assert not variables_of(home).exists()
    assert ensure_down(home) is None


@pytest.mark.slow
def test_an_account_that_cannot_be_bootstrapped_does_not_stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The next `up` would find it, and take it for a whole one."""
    home = Home(tmp_path)
    with subprocess.Popen(["sleep", "600"]) as process:
        written = state(process.pid, psutil.Process(process.pid).create_time())
        failing = (sys.executable, "-c", "raise SystemExit('no toolkit')")
        monkeypatch.setattr(account, "ensure_account", lambda _place: Programs((), failing, tmp_path))
        monkeypatch.setattr(account, "start", lambda *_, **__: (written, True))

        with pytest.raises(Problem, match="no toolkit"):
            ensure_up(home, "soal")
        process.wait(10)
    assert not variables_of(home).exists()


def test_the_view_names_the_file_of_variables_and_no_secret(tmp_path: Path) -> None:
    """What a script reads says how to go on."""
    document = json.loads(json.dumps(account_view(state(1, 1.0), Home(tmp_path)).document))

    assert document == {
        "running": True,
        "pid": 1,
        "endpoint": "http://172.17.0.1:9",
        "imageUri": "a/soal:local",
        "variables": str(tmp_path / "account.env"),
    }


@pytest.mark.parametrize(
    "words", [["--image", "soal"], ["--account", "--iceberg"], ["--account", "--port", "9"]], ids=lambda words: words[0]
)
def test_what_only_the_other_one_knows_is_refused(
    words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An option that would have no effect is never ignored."""
    monkeypatch.setenv("SOAL_HOME", str(tmp_path))
    monkeypatch.setattr(account, "ensure_up", lambda *_: pytest.fail("it was started"))

    done = CliRunner().invoke(app, ["local", "up", *words])

    assert isinstance(done.exception, Problem)
    assert done.exception.exit_code == EXIT_USAGE
    assert list(tmp_path.iterdir()) == []
