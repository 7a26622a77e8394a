"""The handler reads the kernel's counters of memory kills, of the job's own control group or of the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from handler.process.memory_kills import MemoryKills, Reading, read_counters
from handler.process.tree import family

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ME = os.getpid()
FOREIGN = 4_000_001


class Kernel:
    """The kernel's files of one machine."""

    def __init__(self, place: Path) -> None:
        self.proc, self.groups = place / "proc", place / "cgroup"
        (self.proc / "self").mkdir(parents=True)
        self.groups.mkdir()

    def machine(self, kills: int) -> None:
        (self.proc / "vmstat").write_text(f"pgfault 1\noom_kill {kills}\n", encoding="ascii")

    def names(self, text: str) -> None:
        (self.proc / "self" / "cgroup").write_text(text, encoding="utf-8")

    def version_2(self, name: str, kills: int, *processes: int) -> None:
        self._group(self.groups / name, "memory.events", f"oom 9\noom_kill {kills}\noom_group_kill 0\n", processes)

    def version_1(self, name: str, kills: int, *processes: int) -> None:
        where = self.groups / "memory" / name
        self._group(where, "memory.oom_control", f"under_oom 0\noom_kill {kills}\n", processes)

    @staticmethod
    def _group(where: Path, counter: str, text: str, processes: tuple[int, ...]) -> None:
        where.mkdir(parents=True, exist_ok=True)
        (where / counter).write_text(text, encoding="ascii")
        (where / "cgroup.procs").write_text("".join(f"{one}\n" for one in processes), encoding="ascii")

    def read(self) -> Reading:
        return read_counters(self.proc, self.groups, lambda: frozenset({1, ME, ME + 1}))


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path)


def container_of_today(kernel: Kernel, kills: int, *others: int) -> None:
    kernel.names("0::/\n")
    kernel.version_2("", kills, 1, ME, *others)


def container_with_its_host_s_names(kernel: Kernel, kills: int, *others: int) -> None:
    kernel.names("4:memory:/docker/0123\n0::/docker/0123\n")
    kernel.version_1("", kills, 1, ME, *others)


def container_of_version_1(kernel: Kernel, kills: int, *others: int) -> None:
    kernel.names("4:memory:/job\n0::/\n")
    kernel.version_1("", 77, 1, ME + 5, 0)
    kernel.version_1("job", kills, 1, ME, *others)


def session_of_a_bare_machine(kernel: Kernel, kills: int, *others: int) -> None:
    kernel.names("0::/user.slice/session-3.scope\n")
    kernel.version_2("user.slice/session-3.scope", kills, ME, *others)


PLACES = [
    container_of_today,
    container_with_its_host_s_names,
    container_of_version_1,
    session_of_a_bare_machine,
]


@pytest.mark.parametrize("place", PLACES, ids=lambda one: one.__name__)
def test_a_group_of_the_job_s_own_is_a_witness(kernel: Kernel, place: Callable[..., None]) -> None:
    """It holds only this process, its ancestors and its children."""
    kernel.machine(3)
    place(kernel, 1)
    before = kernel.read()
    kernel.machine(9)
    place(kernel, 3, ME + 1)
    assert before.until(kernel.read()) == MemoryKills(job=2, machine=6)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("stranger", [FOREIGN, 0], ids=["another's", "not to be seen from here"])
@pytest.mark.parametrize("place", PLACES, ids=lambda one: one.__name__)
def test_a_group_with_others_in_it_is_none(
    kernel: Kernel, place: Callable[..., None], stranger: int, when: str
) -> None:
    """The killed process may be one of the others."""
    kernel.machine(3)
    place(kernel, 1, *([stranger] if when == "before" else []))
    before = kernel.read()
    kernel.machine(4)
    place(kernel, 2, *([stranger] if when == "after" else []))
    assert before.until(kernel.read()) == MemoryKills(job=None, machine=1)


def test_a_group_below_counts_with_it(kernel: Kernel) -> None:
    """The counter includes kills in the groups below."""
    container_of_today(kernel, 1)
    kernel.version_2("below", 0, FOREIGN)
    assert kernel.read().job is None


def test_without_a_group_nobody_knows_whose_process_it_was(kernel: Kernel) -> None:
    """This is the case on Lambda; where the kernel shows nothing at all, the result is not zero."""
    assert kernel.read().until(kernel.read()) == MemoryKills(job=None, machine=None)
    kernel.machine(3)
    before = kernel.read()
    kernel.machine(4)
    assert before.until(kernel.read()) == MemoryKills(job=None, machine=1)


def test_this_machine_has_a_counter() -> None:
    """Linux has had it since 4.13."""
    assert read_counters().machine is not None


def test_the_family_is_what_is_above_and_below() -> None:
    """A reaped child is gone."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        found = family()
        assert {ME, os.getppid(), child.pid} <= found
    finally:
        child.kill()
        child.wait()
    assert child.pid not in family()


def test_the_emulators_counter_is_that_of_the_job(tmp_path: Path) -> None:
    """A function that the local emulator limits has no group of its own, but a counter that counts nothing else."""
    kernel, counter = Kernel(tmp_path), tmp_path / "counter"
    kernel.machine(5)
    counter.write_text("oom_kill 0\n", encoding="ascii")
    before = read_counters(kernel.proc, kernel.groups, emulated=counter)
    counter.write_text("oom_kill 1\n", encoding="ascii")
    after = read_counters(kernel.proc, kernel.groups, emulated=counter)
    assert before.until(after) == MemoryKills(job=1, machine=0)
