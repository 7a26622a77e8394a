"""The handler finds, signals and ends all descendants of a process on Linux, each known by id and start time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from signal import Signals

import psutil
import pytest

from handler.process.tree import Process, _kill, become_subreaper, descendants, end_all, resident_mb, signal_all

SLEEPER = [sys.executable, "-c", "print('up', flush=True); import time; time.sleep(600)"]


def started() -> subprocess.Popen[bytes]:
    process = subprocess.Popen(SLEEPER, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    return process


def test_what_is_below_is_seen_but_for_what_is_excluded() -> None:
    """A child is identified by its id and start time."""
    before = descendants()
    child = started()
    (found,) = descendants(without=before)
    assert found.pid == child.pid
    assert descendants(without=before | {found}) == frozenset()
    end_all(without=before, timeout_s=10)
    child.wait()


def test_all_are_ended_and_reaped() -> None:
    """A remaining zombie would keep its process id during all later invocations."""
    before = descendants()
    children = [started() for _ in range(3)]
    assert end_all(without=before, timeout_s=10) == frozenset()
    assert not any(psutil.pid_exists(child.pid) for child in children)
    for child in children:
        child.wait()


def test_a_signal_goes_to_all() -> None:
    """Every descendant gets it, and a child without a handler for it ends."""
    before = descendants()
    child = started()
    signal_all(Signals.SIGTERM, without=before)
    assert child.wait() == -Signals.SIGTERM


def test_an_id_that_was_used_again_is_another_process() -> None:
    """No process is signalled by its id alone."""
    before = descendants()
    child = started()
    impostor = Process(child.pid, 1)
    assert {process.pid for process in descendants(without=before | {impostor})} == {child.pid}
    _kill(impostor, Signals.SIGTERM)
    child.kill()
    assert child.wait() == -Signals.SIGKILL


def test_own_memory_counts() -> None:
    """The unit is MiB, not pages or bytes."""
    own = psutil.Process(os.getpid()).memory_info().rss // 2**20
    assert abs(resident_mb(without=descendants()) - own) < 50


def test_being_the_subreaper_can_be_said_twice() -> None:
    """A warm process calls it in each invocation, and the kernel must accept the second call."""
    become_subreaper()
    become_subreaper()


LOOKS = """
import os, sys
try:
    os.close(os.open(f"/proc/{os.getppid()}/mem", os.O_RDWR))
    print("open")
except PermissionError:
    print("closed")
"""
HAS_A_CHILD = """
import os, subprocess, sys
from handler.process import tree
if sys.argv[1] == "closed":
    tree.close_to_others()
looks = subprocess.run([sys.executable, "-c", sys.argv[2]], capture_output=True, text=True, check=True)
print(looks.stdout.strip(), tree.resident_mb() > 0, len(os.listdir("/proc/self/fd")) > 0)
"""


@pytest.mark.parametrize("state", ["open", "closed"])
def test_a_child_of_the_same_user_cannot_reach_into_the_handler(state: str) -> None:
    """It cannot reach the handler's memory; the handler can still read /proc. Without the call the child can."""
    if os.getuid() != 0:
        pytest.skip("only root can start processes of another user, and root may look into every process")
    python = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin")
    if python is None:
        pytest.skip("there is no Python that another user than root may run")
    found = subprocess.run(
        [python, "-c", HAS_A_CHILD, state, LOOKS],
        cwd=Path(__file__).parents[4],
        env={"PYTHONPATH": str(Path(__file__).parents[4])},
        user="nobody",
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == [state, "True", "True"]
