"""After success(): which leftovers are looked for and removed, and which marker stays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from safewriter.objects import StoreError
from safewriter.record.checkpoints import FINISHED
from safewriter.settle.recovery import Cause, Evidence
from tests.support.hygiene import wait_for_hygiene
from tests.unit.safewriter.block.ending_bench import LANDED, FakeSession, ending, landed
from tests.unit.safewriter.world import World


def test_a_success_that_left_nothing_is_clean_without_a_look() -> None:
    """There are no leftovers, so the lake gets no further request."""
    world, job, end = landed()
    end.succeed()
    asked = len(job.network.sent)

    end.finish(files_stay=False)
    wait_for_hygiene()

    assert world.document.attempt.cleaned
    assert world.marked() == ()
    assert [(sent.verb, sent.key.split("/")[0]) for sent in job.network.sent[asked:]] == [
        ("get", "checkpoints"),
        ("replace", "checkpoints"),
        ("delete", "open"),
    ]


def test_files_of_a_statement_behind_success_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the block is clean is decided at its end: no document says it before."""
    world, job, end = landed()
    end.succeed()
    assert not world.document.attempt.cleaned
    monkeypatch.setattr(FakeSession, "may_have_left_files", lambda *_: True)

    end.finish(files_stay=False)
    wait_for_hygiene()

    assert world.document.attempt.cleaned
    assert job.leftover not in world.lake.contents()


def test_files_stay_if_java_has_gone_since_the_success(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can tell what was left and what still runs; a later settler finds the files by the marker."""
    world, job, end = landed()
    end.succeed()

    def gone(*_: object) -> None:
        raise ConnectionError("Java has ended")

    monkeypatch.setattr(FakeSession, "report", gone)
    monkeypatch.setattr(FakeSession, "wait_until_quiet", gone)
    end.finish(files_stay=False)
    wait_for_hygiene()

    assert job.leftover in world.lake.contents()
    assert world.marked() == (job.attempt.nonce,)


def test_files_stay_while_a_task_may_still_upload(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that Spark has killed, or runs twice, may leave another one; a later settler looks for all of them."""
    monkeypatch.setattr(FakeSession, "may_have_left_files", lambda *_: True)
    monkeypatch.setattr(FakeSession, "wait_until_quiet", lambda *_: False)
    world, job, end = landed()
    end.succeed()

    end.finish(files_stay=False)
    wait_for_hygiene()

    assert not world.document.attempt.cleaned
    assert world.marked() == (job.attempt.nonce,)


def test_files_that_a_failed_task_may_have_left_are_looked_for_after_a_success(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The commit refers to the others."""
    monkeypatch.setattr(FakeSession, "may_have_left_files", lambda *_: True)
    world, job, end = landed()
    end.succeed()
    assert not world.document.attempt.cleaned

    end.finish(files_stay=False)
    wait_for_hygiene()

    assert world.document.attempt.cleaned
    assert world.marked() == ()
    assert job.leftover not in world.lake.contents()
    assert all(file.key in world.lake.contents() for file in job.files)


def test_a_statement_that_outlives_its_block_keeps_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends at the gate, which reports it to the supervisor; a later settler finds the files by the marker."""
    monkeypatch.setattr(FakeSession, "may_have_left_files", lambda *_: True)
    world, job, end = landed()
    end.succeed()

    end.finish(files_stay=True)
    wait_for_hygiene()

    assert job.leftover in world.lake.contents()
    assert world.marked() == (job.attempt.nonce,)


def test_a_success_that_could_not_be_cleaned_keeps_its_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise no sweeper would find the files of a failed task."""
    monkeypatch.setattr(FakeSession, "may_have_left_files", lambda *_: True)
    world, job, end = landed()
    end.succeed()

    def denied(*_: object, **__: object) -> None:
        raise StoreError("denied")

    monkeypatch.setattr(world.lake, "list", denied)
    end.finish(files_stay=False)
    wait_for_hygiene()

    assert world.marked() == (job.attempt.nonce,)


def test_an_earlier_attempt_s_files_are_looked_for_after_a_success() -> None:
    """They may have arrived after that attempt's own clean-up; the block's own tasks have left nothing."""
    world = World()
    first = world.job().begin()
    world.owner_dies()
    world.settle(Cause.KILLED, Evidence(1, nothing_sent=True, requests_ended=True))
    second = world.job().begin().land()
    world.lake.put(first.leftover, b"parquet")
    end = ending(second, FakeSession(sight=replace(LANDED, version=second.slot)))
    end.succeed()

    end.finish(files_stay=False)
    wait_for_hygiene()

    assert first.leftover not in world.lake.contents()
    assert world.marked() == ()


def test_a_note_may_expire_when_its_commit_has_landed() -> None:
    """The commit has its slot for good; before that nothing proves it."""
    world = World(existing=False)
    job = world.job().begin().land()
    key = job.checkpoints.note_key(world.key, 1)
    assert world.bucket.tags[key] == ""
    end = ending(job, FakeSession(sight=replace(LANDED, version=0, noted=True)))
    end.succeed()

    end.finish(files_stay=False)
    wait_for_hygiene()

    assert world.bucket.tags[key] == FINISHED


def test_what_somebody_has_cleaned_is_not_cleaned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The supervisor took the process for dead, found the commit, and removed the leftovers."""
    world, job, end = landed()
    world.settle(Cause.KILLED, Evidence(1, requests_ended=True))
    assert world.document.attempt.cleaned
    end.succeed()
    monkeypatch.setattr(job.recovery, "clean", lambda *_, **__: pytest.fail("nothing is left to look for"))

    end.finish(files_stay=False)
    wait_for_hygiene()
