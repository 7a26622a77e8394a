"""A memory limit without a control group kills the process that the kernel would, and counts each page once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from scripts.provision.place import ROOT

HOLD = "import sys; held = bytearray(b'x') * (int(sys.argv[1]) << 20)"
TELL = "print(flush=True); sys.stdin.read()"
LOOKER = f"""
import subprocess, sys
from scripts.memory_limit import MemoryLimit

def child(code, size_mb):
    started = subprocess.Popen([sys.executable, "-c", code, str(size_mb)], stdin=-1, stdout=-1)
    started.stdout.readline()
    return started

hold, tell = {HOLD!r} + chr(10), {TELL!r}
limit = MemoryLimit(300)
"""


def looked(code: str) -> str:
    """Run code that looks at its own children; return its output."""
    command = [sys.executable, "-P", "-c", LOOKER + code]
    done = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize(("size_mb", "kills"), [(250, 0), (350, 1)])
def test_a_process_above_the_limit_is_killed_and_counted(size_mb: int, kills: int) -> None:
    """The count is in the form of the kernel's; below the limit nobody is killed."""
    code = f"""
eater = child(hold + tell, {size_mb})
limit.look()
print(limit.counter.read_text().strip())
eater.communicate()
print(eater.returncode)
"""
    assert looked(code).splitlines() == [f"oom_kill {kills}", str(-9 * kills)]


def test_the_process_with_the_highest_score_is_killed_and_not_the_largest() -> None:
    """The job has the higher score, so the handler lives, and answers."""
    code = """
handler = child(hold + tell, 200)
job = child("open('/proc/self/oom_score_adj', 'w').write('900')" + chr(10) + hold + tell, 150)
limit.look()
print(job.wait(), handler.poll())
handler.communicate()
"""
    assert looked(code) == "-9 None"


def test_a_page_of_several_processes_counts_once() -> None:
    """Forks that share their parent's memory are together within a limit that two of them would pass."""
    code = """
family = child(hold + chr(10) + "import os; [os.fork() or os.read(0, 1) for _ in range(2)]" + chr(10) + tell, 200)
limit.look()
print(limit.counter.read_text().strip())
family.kill()
"""
    assert looked(code) == "oom_kill 0"


def test_the_next_look_comes_before_the_rest_can_be_used_up() -> None:
    """Near the limit it looks more often."""
    code = """
idle = limit.look()
eater = child(hold + tell, 250)
print(limit.look() < idle)
eater.communicate()
"""
    assert looked(code) == "True"


def test_a_process_that_has_just_ended_holds_nothing() -> None:
    """Its pages are gone, although it was counted a moment before."""
    code = """
from handler.process.tree import descendants
from scripts.memory_limit import _share_kb
eater = child(hold + tell, 200)
(process,) = descendants()
before = _share_kb(process, 1)
eater.communicate()
print(before > 100_000, _share_kb(process, 250_000))
"""
    assert looked(code) == "True 0"
