"""The handler keeps a JVM and its emptied sandbox for the next job that fits, and ends every other one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from handler.spark.command import Command
from handler.stages.reuse import Reuse, SandboxAndJvm
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from pathlib import Path


class Machine:
    """A JVM that was started for a command."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.alive = True
        self.ended = 0

    def is_alive(self) -> bool:
        return self.alive

    def end(self) -> None:
        self.ended += 1


def command(place: SandboxAndJvm, *words: str) -> Command:
    return Command(("java", *words), {}, place.sandbox.work)


def keep(place: SandboxAndJvm) -> Any:
    machine: Any = Machine(command(place))
    place.keep(machine)
    return machine


def test_a_kept_machine_waits_in_its_emptied_sandbox(tmp_path: Path) -> None:
    """The next job gets both; the directories are the same, since the JVM works in them. The JVM's log about its start
    is removed: it says nothing about the next job, and the first job may have changed it.
    """
    reuse = Reuse()
    with reuse.place(tmp_path) as first:
        machine = keep(first)
        (first.sandbox.work / "left").touch()
        first.sandbox.journal.touch()
        first.sandbox.archive_log.touch()
    assert reuse.sandbox == first.sandbox.root
    with reuse.place(tmp_path) as second:
        assert second.sandbox == first.sandbox
        found: Any = second.jvm_for(command(second))
        assert found is machine
        assert list(second.sandbox.work.iterdir()) == []
        assert not second.sandbox.journal.exists()
        assert not second.sandbox.archive_log.exists()
        assert machine.ended == 0


def test_a_machine_that_is_not_kept_ends_before_its_sandbox_is_removed(tmp_path: Path) -> None:
    """This includes a JVM that has run an earlier job, and an end by an error."""
    reuse = Reuse()
    with reuse.place(tmp_path) as first:
        machine = keep(first)
    with pytest.raises(ZeroDivisionError), reuse.place(tmp_path):
        raise ZeroDivisionError
    assert machine.ended == 1
    assert (reuse.sandbox, list(tmp_path.iterdir())) == (None, [])


@pytest.mark.parametrize("other", ["another command", "it has ended"])
def test_a_machine_that_cannot_run_the_next_job_ends(tmp_path: Path, other: str) -> None:
    """The job gets a new one in the same sandbox."""
    reuse = Reuse()
    with reuse.place(tmp_path) as first:
        machine = keep(first)
    machine.alive = other != "it has ended"
    with reuse.place(tmp_path) as second:
        words = ("-Xmx1g",) if other == "another command" else ()
        assert second.jvm_for(command(second, *words)) is None
        assert machine.ended == 1


@pytest.mark.parametrize("change", ["moved", "replaced", "closed"])
def test_a_sandbox_that_a_job_has_changed_is_not_used_again(tmp_path: Path, change: str) -> None:
    """The JVM would work in a directory that no longer exists."""
    reuse = Reuse()
    with reuse.place(tmp_path) as place:
        machine = keep(place)
        work = place.sandbox.work
        if change == "moved":
            place.sandbox.root.rename(tmp_path / "elsewhere")
        elif change == "replaced":
            work.rename(place.sandbox.root / "other")
            work.mkdir(mode=0o700)
        else:
            work.chmod(0)
    assert machine.ended == 1
    assert reuse.sandbox is None


def test_a_sandbox_that_cannot_be_emptied_in_time_is_not_used_again(tmp_path: Path) -> None:
    """Its JVM is killed, and the next job, which removes the rest, gets a fresh one."""
    reuse, said = Reuse(), list[str]()
    with reuse.place(tmp_path, may_clean_after=lambda: False, warn=said.append) as first:
        machine = keep(first)
        (first.sandbox.work / "left").mkdir()
    assert (machine.ended, reuse.sandbox) == (1, None)
    assert [first.sandbox.root.name in warning for warning in said] == [True]
    with reuse.place(tmp_path, warn=said.append) as second:
        assert second.jvm is None
        assert list(tmp_path.iterdir()) == [second.sandbox.root]
    assert len(said) == 1


def test_a_waiting_sandbox_is_removed_within_the_time_of_the_job_that_has_it(tmp_path: Path) -> None:
    """The time of the job for which it was made is over by then."""
    reuse, over = Reuse(), list[str]()
    with reuse.place(tmp_path, may_clean_after=lambda: not over) as first:
        keep(first)
    over.append("the first invocation")
    with reuse.place(tmp_path) as second:
        assert second.sandbox == first.sandbox
    assert list(tmp_path.iterdir()) == []


def test_reuse_a_hundred_times_leaves_one_sandbox(tmp_path: Path) -> None:
    """No resource grows."""
    reuse = Reuse()
    with reuse.place(tmp_path) as first:
        machine = keep(first)
    for _ in range(100):
        with reuse.place(tmp_path) as place:
            assert place is first
            place.keep(machine)
    assert len(list(tmp_path.iterdir())) == 1
    first.stack.close()
    assert machine.ended == 1


def test_a_machine_that_was_started_before_the_first_job_waits_for_it(tmp_path: Path) -> None:
    """It has run no job; a job with the same command gets it."""
    reuse = Reuse()
    reuse.begin(tmp_path, lambda sandbox: Command((sys.executable, "-c", "input()"), {}, sandbox.work))
    with reuse.place(tmp_path) as place:
        waiting = place.jvm_for(Command((sys.executable, "-c", "input()"), {}, place.sandbox.work))
        assert waiting is not None
        assert waiting.is_alive()
        assert waiting.drivers is None
    assert waiting.process.returncode is not None
    assert list(tmp_path.iterdir()) == []


def test_a_machine_that_was_ready_before_the_first_job_is_known_by_its_processes(tmp_path: Path) -> None:
    """This is the same as for a JVM that has run a job."""
    reuse = Reuse()
    words = (sys.executable, "-c", "import os; os.read(0, 1); os.write(0, b'%d 0\\n' % os.getpid()); os.read(0, 1)")
    reuse.begin(tmp_path, lambda sandbox: Command(words, {}, sandbox.work), ready_within_s=BUSY_S)
    with reuse.place(tmp_path) as place:
        waiting = place.jvm_for(Command(words, {}, place.sandbox.work))
        assert waiting is not None
        assert waiting.drivers is not None


def test_a_machine_that_waits_is_tidied(tmp_path: Path) -> None:
    """It answers when it is; without one, there is nothing to say so."""
    reuse = Reuse()
    assert not reuse.tidy(BUSY_S)
    words = (sys.executable, "-c", "import os; os.read(0, 1); os.write(0, b'%d 0\\n' % os.getpid()); os.read(0, 1)")
    reuse.begin(tmp_path, lambda sandbox: Command(words, {}, sandbox.work))
    assert reuse.tidy(BUSY_S)
    assert not reuse.tidy(0)
    with reuse.place(tmp_path) as place:
        place.end()


def test_a_machine_that_does_not_get_ready_ends(tmp_path: Path) -> None:
    """Its late ready line would be read as the end of the first job."""
    reuse = Reuse()
    words = (sys.executable, "-c", "import os; os.read(0, 1); os.read(0, 1)")
    reuse.begin(tmp_path, lambda sandbox: Command(words, {}, sandbox.work), ready_within_s=0)
    assert (reuse.sandbox, list(tmp_path.iterdir())) == (None, [])


def test_a_machine_that_cannot_be_started_leaves_nothing(tmp_path: Path) -> None:
    """The first job meets the error itself."""
    reuse = Reuse()
    with pytest.raises(FileNotFoundError):
        reuse.begin(tmp_path, lambda sandbox: Command(("/no/such/java",), {}, sandbox.work))
    assert (reuse.sandbox, list(tmp_path.iterdir())) == (None, [])
