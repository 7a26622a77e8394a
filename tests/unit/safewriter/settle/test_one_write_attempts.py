"""Several attempts of a write that has no document."""

from __future__ import annotations

import dataclasses

import pytest

from safewriter.errors import UsageError
from safewriter.record.document import CommitPoint, Status
from safewriter.settle import sweeper
from safewriter.settle.one_write import Action
from safewriter.settle.override import override
from safewriter.settle.sweeper import Sweeper
from tests.unit.safewriter.settle.unclaimed import DAYS, close, vanish
from tests.unit.safewriter.world import World


def test_a_write_stays_open_as_long_as_any_attempt_of_it_may_live() -> None:
    """The oldest marker is over, a younger attempt is not: its commit would count as rolled back."""
    world = World()
    world.job().begin()
    world.sleep(400)
    younger = world.job().begin()
    world.sleep(270)
    world.bucket.delete(f"checkpoints/{world.key}.json")
    assert len(world.marked()) == 2

    found = close(world)

    assert found.action is Action.ALIVE
    assert world.checkpoints.read(world.key) is None
    with pytest.raises(UsageError, match=younger.attempt.nonce):
        override(world.checkpoints, world.key, Status.ROLLED_BACK, "looked at it", world.clock)


def test_attempts_that_a_sweep_did_not_list_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The listing is truncated, and may be minutes old."""
    world = World()
    world.job().begin()
    world.sleep(400)
    world.job().begin()
    world.sleep(270)
    vanish(world)
    monkeypatch.setattr(sweeper, "_LISTED_MAX", 1)
    one = Sweeper(world.checkpoints, world.recovery(), world.clock, lambda: True, draw=lambda: 0, threads=1)

    assert [look.action for look in one.sweep().looks] == [Action.ALIVE]
    assert world.checkpoints.read(world.key) is None


def test_the_highest_epoch_is_the_youngest_attempt_s() -> None:
    """So the document names the attempt that raised it, with its prefix."""
    world = World()
    world.job().begin()
    world.settle()
    world.sleep(1)
    younger = world.job().begin().land()
    world.grace_passes()
    vanish(world)
    assert len(world.marked()) == 2

    assert close(world).action is Action.SETTLED
    assert (world.document.epoch, world.document.owner) == (2, younger.attempt.nonce)
    assert world.document.attempt.prefix == younger.document.attempt.prefix


def test_all_markers_of_a_write_that_is_closed_go() -> None:
    """None of its attempts can come back, so no marker is needed any more."""
    world = World()
    for _ in range(2):
        world.job().claimer.announce()
    world.grace_passes()

    found = close(world)

    assert found.action is Action.SETTLED
    assert tuple(world.checkpoints.markers_of(world.key)) == ()


def test_what_was_fenced_is_closed_with_its_epoch() -> None:
    """A claim of the same epoch would find itself fenced."""
    world = World()
    world.job().begin()
    world.settle()
    world.job().begin()
    world.grace_passes()
    assert world.settle().status is Status.ROLLED_BACK
    world.bucket.delete(f"checkpoints/{world.key}.json")
    world.job().claimer.announce()
    world.grace_passes()

    found = close(world)

    assert found.document is not None
    assert (found.document.status, found.document.epoch) == (Status.ROLLED_BACK, 2)
    assert not found.document.attempt.claimed
    assert world.job().run()


def test_the_look_begins_with_the_oldest_attempt() -> None:
    """Its commit came before the younger one began."""
    world = World()
    world.job().begin().land()
    world.bucket.delete(f"checkpoints/{world.key}.json")
    world.sleep(2 * DAYS)
    for _ in range(30):
        world.append_foreign()
    world.job().claimer.announce()
    world.grace_passes()
    assert len(world.marked()) == 2

    found = close(world)

    assert found.document is not None
    assert found.document.status is Status.COMMITTED


def test_a_write_of_which_any_attempt_needs_success_is_left_to_a_person() -> None:
    """It is unknown whose commit it is, and whether success() was called."""
    world = World()
    world.job().begin().land()
    world.bucket.delete(f"checkpoints/{world.key}.json")
    other = dataclasses.replace(world.job().claimer, commit_point=CommitPoint.SUCCESS)
    other.announce()
    world.grace_passes()

    found = close(world)

    assert found.action is Action.FAILED
    assert world.checkpoints.read(world.key) is None
