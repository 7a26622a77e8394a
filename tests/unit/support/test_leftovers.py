"""The tests' runner kills and names processes that a command leaves, and deletes its temporary files."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[3]
# A process without a waiting parent, in its own session, which prints its id.
DETACHED = (
    "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'],"
    " start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL); print(child.pid)"
)


def leftovers(program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "tests/support/leftovers.py", sys.executable, "-c", program]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(("program", "code"), [("pass", 0), ("raise SystemExit(5)", 5), ("import os; os.abort()", 134)])
def test_the_exit_code_of_the_command_is_kept(program: str, code: int) -> None:
    """The exit code of the command is returned, a signal as by a shell."""
    assert leftovers(program).returncode == code


@pytest.mark.slow
def test_a_process_that_stays_is_named_killed_and_a_failure() -> None:
    """A detached process of a successful command makes the run fail, and is killed."""
    done = leftovers(DETACHED)

    pid = int(done.stdout)
    assert done.returncode == 1
    assert f"left behind: {pid} " in done.stderr
    assert not psutil.pid_exists(pid)


def test_temporary_files_go_with_the_command() -> None:
    """Temporary files are deleted, also those of a killed process."""
    done = leftovers("import os, tempfile; print(tempfile.mkdtemp(), flush=True); os.abort()")

    assert done.stdout.startswith(tempfile.gettempdir())
    assert not Path(done.stdout.strip()).exists()
