"""When a marker may be removed: after the grace, or once it is known that all requests have ended."""

from __future__ import annotations

from safewriter.record.liveness import GRACE_MS
from safewriter.settle.recovery import Cause, Evidence
from tests.unit.safewriter.failing import Network
from tests.unit.safewriter.invariants import nothing_is_left
from tests.unit.safewriter.settle.traces import data_files
from tests.unit.safewriter.surroundings import WHOLE_MS
from tests.unit.safewriter.world import World


def test_a_marker_stays_until_the_grace_has_passed() -> None:
    """A data file may still arrive, so a settler must look again."""
    world = World()
    job = world.job().begin()
    world.settle()
    assert world.marked() == (job.attempt.nonce,)
    assert not world.document.attempt.cleaned
    world.lake.put(f"{job.document.attempt.prefix}late.parquet", b"")

    world.grace_passes()
    assert world.recovery().clean(world.key) == 1

    assert world.marked() == ()
    assert world.document.attempt.cleaned
    assert world.document.attempt.files_removed == 4
    nothing_is_left(world)


def test_the_files_of_a_job_that_lives_after_its_success_stay_until_the_grace_has_passed() -> None:
    """A statement may still run that needs them; the next settler cannot know."""
    world = World()
    job = world.job().begin().land()
    assert job.success()

    assert world.recovery().clean(world.key) == 0
    assert job.leftover in world.lake.contents()
    assert world.marked() == (job.attempt.nonce,)

    world.grace_passes()
    assert world.recovery().clean(world.key) == 1
    assert job.leftover not in world.lake.contents()
    assert world.marked() == ()


def test_without_a_deadline_the_grace_begins_with_the_verdict() -> None:
    """Without a deadline the attempt's latest end is its verdict."""
    world = World()
    world.job(deadline_ms=None).begin()
    world.now_ms += 10 * WHOLE_MS
    world.settle()
    world.recovery().clean(world.key)
    assert len(world.marked()) == 1

    world.now_ms += GRACE_MS + 1
    world.recovery().clean(world.key)

    assert world.marked() == ()
    nothing_is_left(world)


def test_a_guard_that_was_frozen_comes_back_for_its_own() -> None:
    """Files that it wrote after its attempt was cleaned are removed once it knows that all its requests have ended."""
    world = World()
    job = world.job().begin()
    world.settle()
    world.grace_passes()
    world.recovery().clean(world.key)
    assert world.document.attempt.cleaned
    late = f"{job.document.attempt.prefix}late.parquet"
    world.lake.put(late, b"")

    assert world.recovery().clean(world.key, ended_nonce=job.attempt.nonce) == 1

    assert late not in data_files(world)
    nothing_is_left(world)


def test_whoever_knows_that_all_is_quiet_is_done_at_once() -> None:
    """A guard whose tasks have ended, and that has sent no commit, need not wait for the grace."""
    world = World()
    world.job().begin()

    world.settle(Cause.EXCEPTION, Evidence(1, nothing_sent=True, requests_ended=True))

    assert world.document.attempt.cleaned
    assert world.marked() == ()
    nothing_is_left(world)


def test_quiet_is_said_of_one_attempt_only() -> None:
    """The marker of an earlier attempt, whose grace has not passed, stays."""
    world = World()
    first = world.job().begin()
    world.settle()
    world.job().begin()

    world.settle(Cause.EXCEPTION, Evidence(2, nothing_sent=True, requests_ended=True))

    assert world.marked() == (first.attempt.nonce,)
    assert [attempt.cleaned for attempt in world.document.attempts] == [False, True]


def test_a_marker_goes_after_the_document_was_touched() -> None:
    """A claim that may still arrive must lose before the marker that leads to it is removed."""
    world = World()
    world.job().begin()
    network = Network()

    world.settle(Cause.EXCEPTION, Evidence(1, nothing_sent=True, requests_ended=True), network)

    writes = [(sent.verb, sent.key.split("/")[0]) for sent in network.sent if sent.mutates]
    assert writes[-2:] == [("replace", "checkpoints"), ("delete", "open")]
