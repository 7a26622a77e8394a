"""How a block ends without success(), and which errors and notes the user sees."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.errors import (
    DeadlineError,
    StoreError,
    UnknownOutcomeError,
    UnsupportedError,
)
from safewriter.record.document import CommitPoint, Status
from safewriter.record.journal import Journal
from safewriter.settle.recovery import Cause, Evidence
from tests.support.hygiene import wait_for_hygiene
from tests.support.java_errors import Java, converted, existing, raised, refused
from tests.unit.safewriter.block.ending_bench import FakeSession, ending, landed
from tests.unit.safewriter.surroundings import TABLE
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.safewriter.job import Job


def of_the_path() -> Exception:
    """Return Delta's error that a table exists already."""
    return converted(existing("DELTA_PATH_EXISTS", "Cannot write to already existent path"))


def after_a_creator(*, creators: int = 1) -> Job:
    """A second attempt at a write whose earlier attempts began without the table; their creation was undone."""
    world = World(existing=False)
    for _ in range(creators):
        world.job().begin().land()
        world.owner_dies()
        world.settle(Cause.EXCEPTION)
    return world.job().begin()


def gone() -> None:
    raise ConnectionRefusedError


# -- left without success() ------------------------------------------------------------------------------------------


def test_a_block_that_fails_is_settled_with_its_undo() -> None:
    """A landed commit is undone, and files that no version refers to are deleted."""
    world, job, end = landed()

    end.fail(RuntimeError("the script's own"))

    assert world.document.status is Status.ROLLED_BACK
    assert world.log.live() == ["foreign-0.parquet"]
    assert job.leftover not in world.lake.contents()


def test_a_commit_that_the_watchdog_has_found_stays_and_the_script_hears_it() -> None:
    """The block fails after the deadline: the verdict is committed, nothing undoes it, the script gets the error."""
    _, _, end = landed()
    end.at_deadline()

    with pytest.raises(DeadlineError, match="the write is committed"):
        end.fail(RuntimeError("too slow"))


def test_a_failure_that_cannot_be_settled_keeps_the_script_s_error() -> None:
    """The user must see the first error; a note on it says that the outcome is open."""
    _, job, end = landed()
    job.recovery.settling = replace(job.recovery.settling, may_go_on=lambda: False)
    error = RuntimeError("the script's own")

    end.fail(error)

    assert [note for note in error.__notes__ if "could not be settled in time" in note]


def test_a_block_without_success_that_cannot_be_settled_is_an_error_of_its_own() -> None:
    """The script raised no error that could carry the note."""
    _, job, end = landed()
    job.recovery.settling = replace(job.recovery.settling, may_go_on=lambda: False)

    with pytest.raises(UnknownOutcomeError):
        end.fail(None)


@pytest.mark.parametrize("quiet", [True, False])
def test_what_somebody_else_has_settled_is_cleaned_by_the_block_that_comes_back(*, quiet: bool) -> None:
    """The process froze, wrote on after it was settled and cleaned, and removes its own files if all tasks ended."""
    world = World()
    job = world.job().begin()
    end = ending(job, FakeSession(quiet=iter([quiet])))
    world.settle(Cause.KILLED, Evidence(1, nothing_sent=True, requests_ended=True))
    world.lake.put(job.leftover, b"parquet")

    end.fail(RuntimeError("woken up"))
    wait_for_hygiene()

    assert (job.leftover in world.lake.contents()) is not quiet


def test_what_the_block_has_settled_itself_is_cleaned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settling has cleaned up; a second clean-up would cost a LIST."""
    job = World().job().begin()
    end = ending(job, FakeSession())
    looks: list[object] = []
    clean = job.recovery.clean

    def counted(*arguments: Any, **more: Any) -> int:
        looks.append(arguments)
        return clean(*arguments, **more)

    monkeypatch.setattr(job.recovery, "clean", counted)
    end.fail(RuntimeError("the script's own"))
    wait_for_hygiene()
    assert len(looks) == 1


# -- what the user hears -----------------------------------------------------------------------------------------------


def test_a_refusal_by_the_gate_gets_a_type_of_its_own() -> None:
    """The script sees what to do instead of a Java exception."""
    job = World().job().begin()
    error = raised(refused("operation", "OPTIMIZE is not guarded; run it before the block"))

    with pytest.raises(UnsupportedError, match="run it before the block") as told:
        ending(job, FakeSession()).fail(error)
    assert told.value.__cause__ is error


def test_an_interrupt_stays_an_interrupt() -> None:
    """Whatever is behind it: an interrupt is not replaced by another error."""
    job = World().job().begin()
    interrupt = KeyboardInterrupt()
    interrupt.java_exception = refused("operation", "OPTIMIZE is not guarded")  # type: ignore[attr-defined]

    ending(job, FakeSession()).fail(interrupt)


@pytest.mark.parametrize("says", ["SafeWriter [late]: x", "SafeWriter [denied]: x"])
def test_a_cell_in_an_error_s_message_does_not_pass_for_the_gate_s_refusal(says: str) -> None:
    """The script keeps its error, which no attempt after it can help."""
    job = World().job().begin()
    error = raised(Java("org.apache.spark.SparkException", f"The value '{says}' cannot be cast to INT"))

    ending(job, FakeSession()).fail(error)


def test_an_error_is_explained_without_a_jvm() -> None:
    """Nothing is known of the gate, and the script's own error is raised."""
    job = World().job().begin()

    ending(job, FakeSession(answer=gone)).fail(raised(refused("operation", "OPTIMIZE is not guarded")))


def test_a_block_that_is_left_without_success_only_warns(caplog: pytest.LogCaptureFixture) -> None:
    """There is no error to which a note could be added."""
    job = World().job().begin()

    ending(job, FakeSession()).fail(None)

    assert "block left without success()" in caplog.text


@pytest.mark.parametrize("creators", [1, 2])
@pytest.mark.parametrize(
    "java",
    [
        existing("DELTA_PATH_EXISTS", "Cannot write to already existent path"),
        Java("a.SparkException", "failed", Java("org.apache.iceberg.exceptions.AlreadyExistsException", "It is there")),
    ],
)
def test_a_table_that_an_earlier_attempt_began_is_explained(java: Java, creators: int) -> None:
    """Spark only reports that the table exists."""
    error = raised(java)

    ending(after_a_creator(creators=creators), FakeSession()).fail(error)

    assert error.__notes__ == ["an earlier attempt of this write began to create the table; append to it to retry"]


def test_a_table_that_was_there_before_any_attempt_is_not_explained_by_one() -> None:
    """Somebody else created it."""
    world = World()
    world.job().begin()
    world.owner_dies()
    error = of_the_path()

    ending(world.job().begin(), FakeSession()).fail(error)

    assert not hasattr(error, "__notes__")


def test_one_attempt_s_own_creation_is_not_explained_by_itself() -> None:
    """There was no earlier attempt."""
    error = of_the_path()

    ending(World(existing=False).job().begin(), FakeSession()).fail(error)

    assert not hasattr(error, "__notes__")


def test_another_error_after_an_earlier_creation_has_no_note() -> None:
    """Only an error that says the table exists is explained by it, by its class and not by a text in it."""
    error = RuntimeError("[DELTA_PATH_EXISTS] out of memory")

    ending(after_a_creator(), FakeSession()).fail(error)

    assert not hasattr(error, "__notes__")


def test_a_commit_that_stays_is_told() -> None:
    """The block failed and its rows are in the table: a note on the error gives the reason."""
    world = World(properties={"delta.appendOnly": "true"})
    _, _, end = landed(world)
    error = RuntimeError("the script's own")

    end.fail(error)

    assert world.document.status is Status.COMMITTED
    assert [note for note in error.__notes__ if note.startswith(f"{TABLE}: the block failed, but its commit stays: ")]


def test_a_commit_that_another_settler_has_found_first_is_told() -> None:
    """The process stalled: the verdict stands, so nothing is undone, and the script learns that its rows are there."""
    world, _, end = landed()
    world.owner_dies()
    assert world.settle(Cause.SWEEPER).status is Status.COMMITTED
    error = RuntimeError("the script's own")

    end.fail(error)

    assert error.__notes__ == [f"{TABLE}: the write is committed after all; a retry skips it"]


# -- the watchdog ------------------------------------------------------------------------------------------------------


def test_the_deadline_is_told_to_the_supervisor(tmp_path: Path) -> None:
    """The exception may lose its type on its way through a stream; the journal records the deadline."""
    job = World().job().begin()
    with Journal(tmp_path / "journal") as journal:
        end = ending(job, FakeSession())
        end._block = replace(end._block, journal=str(tmp_path / "journal"))

        end.at_deadline()

        told = [entry for entry in journal.entries() if entry.event == "deadline"]
    assert [entry.fields for entry in told] == [{"nonce": job.attempt.nonce}]


@pytest.mark.parametrize("returns", [True, False])
def test_the_supervisor_hears_whether_success_returned_in_spite_of_the_deadline(
    tmp_path: Path,
    returns: bool,  # noqa: FBT001
) -> None:
    """If it did not, the script may have swallowed the error and left out the rest of its work."""
    _, job, end = landed()
    with Journal(tmp_path / "journal") as journal:
        end._block = replace(end._block, journal=str(tmp_path / "journal"))
        end.at_deadline()
        if returns:
            end.succeed()
        else:
            with pytest.raises(DeadlineError):
                end.fail(None)
        told = [(entry.event, entry.fields) for entry in journal.entries()[1:]]
    about = {"nonce": job.attempt.nonce}
    assert told == [("deadline", about), *([("succeeded", about)] if returns else [])]


def test_a_journal_that_is_gone_does_not_keep_the_watchdog_from_settling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script has deleted its work directory."""
    exits: list[int] = []
    monkeypatch.setattr(os, "_exit", exits.append)
    world = World()
    end = ending(world.job().begin(), FakeSession())
    end._block = replace(end._block, journal=str(tmp_path / "gone" / "journal"))

    end.at_deadline()

    assert exits == []
    assert world.document.status is Status.ROLLED_BACK


# -- a block that was not opened ---------------------------------------------------------------------------------------


def test_a_gate_that_was_never_opened_is_not_asked() -> None:
    """There is no gate, and no fence is needed: nothing was sent."""
    world = World()
    job = world.job().begin()

    ending(job, FakeSession(has_begun=False, answer=gone)).never_began()

    assert world.document.attempt.cleaned
    assert world.log.actions("txn") == []


def test_a_block_that_could_not_be_opened_nor_settled_stays_open(caplog: pytest.LogCaptureFixture) -> None:
    """The error that kept it from opening is raised."""
    world = World(CommitPoint.SUCCESS)
    job = world.job().begin()
    job.recovery.settling = replace(job.recovery.settling, may_go_on=lambda: False)

    ending(job, FakeSession(has_begun=False)).never_began()

    assert world.document.status is Status.IN_PROGRESS
    assert "stays open for the next settler" in caplog.text


def test_a_store_that_does_not_answer_hides_no_error_of_the_opening(caplog: pytest.LogCaptureFixture) -> None:
    """The write stays open as above."""
    job = World(CommitPoint.SUCCESS).job().begin()

    def refuse(*_: object) -> None:
        raise StoreError("slow down")

    job.recovery.settle = refuse  # type: ignore[assignment]
    ending(job, FakeSession(has_begun=False)).never_began()

    assert "stays open for the next settler: slow down" in caplog.text


def test_a_block_that_stood_still_leaves_the_epoch_of_its_successor_alone() -> None:
    """Its own epoch was settled meanwhile, and a live attempt has claimed the write again."""
    world = World()
    end = ending(world.job().begin(), FakeSession())
    world.settle(Cause.KILLED, Evidence(1, nothing_sent=True))
    world.job().begin()
    end.fail(RuntimeError("woken up"))
    assert (world.document.status, world.document.epoch) == (Status.IN_PROGRESS, 2)


def test_a_block_leaves_an_attempt_alone_that_has_its_own_epoch() -> None:
    """The document was deleted while it was open, and another attempt has claimed the same epoch since."""
    world = World()
    end = ending(world.job().begin(), FakeSession())
    world.bucket.delete(f"checkpoints/{world.key}.json")
    other = world.job().begin()
    end.fail(RuntimeError("the script's own"))
    assert (world.document.status, world.document.owner) == (Status.IN_PROGRESS, other.attempt.nonce)
