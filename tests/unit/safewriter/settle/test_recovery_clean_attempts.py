"""Whose files are removed when a write has had several attempts."""

from __future__ import annotations

from tests.unit.safewriter.delta_log import key_of
from tests.unit.safewriter.failing import Fault, Network
from tests.unit.safewriter.invariants import nothing_is_left
from tests.unit.safewriter.settle.traces import data_files
from tests.unit.safewriter.world import World


def test_what_earlier_attempts_have_left_goes_too() -> None:
    """Under the newest verdict every attempt that is not yet clean is cleaned."""
    world = World()
    world.job().begin()
    network = Network(Fault.REFUSE, 4, and_all_after=True)  # fence, verdict, audit: then nothing is cleaned
    world.settle(network=network)
    assert network.fired
    first = world.jobs[0].leftover
    assert first in data_files(world)
    second = world.job().begin().land()

    world.settle()

    assert first not in data_files(world)
    assert {file.key for file in second.files} <= data_files(world)
    world.grace_passes()
    world.recovery().clean(world.key)
    nothing_is_left(world)


def test_who_comes_back_cleans_after_itself_also_while_a_later_attempt_writes() -> None:
    """It counted as clean while it was frozen, so no settler would clean it again; the open document stays."""
    world = World()
    first = world.job().begin()
    world.settle()
    world.grace_passes()
    world.recovery().clean(world.key)
    second = world.job().begin()
    document = world.bucket.contents()[f"checkpoints/{world.key}.json"]
    world.lake.put(first.leftover, b"late")

    assert world.recovery().clean(world.key, ended_nonce=first.attempt.nonce) == 1

    assert first.leftover not in data_files(world)
    assert {second.leftover, *(file.key for file in second.files)} <= data_files(world)
    assert world.bucket.contents()[f"checkpoints/{world.key}.json"] == document
    assert world.recovery().clean(world.key, ended_nonce=second.attempt.nonce) == 0


def test_what_of_an_earlier_attempt_comes_late_goes_with_the_next() -> None:
    """It counted as clean, and its owner does not come back."""
    world = World()
    first = world.job().begin()
    world.settle()
    world.grace_passes()
    world.recovery().clean(world.key)
    world.job().begin()
    world.lake.put(first.leftover, b"late")
    world.settle()

    assert first.leftover not in data_files(world)
    world.grace_passes()
    world.recovery().clean(world.key)
    nothing_is_left(world)


def test_a_log_that_has_forgotten_an_earlier_attempt_does_not_keep_the_last_from_being_cleaned() -> None:
    """Late leftovers of the earlier one are for `soal orphans`."""
    world = World()
    world.job().begin()
    world.settle()
    world.grace_passes()
    world.recovery().clean(world.key)
    for _ in range(3):
        world.append_foreign()
    world.sleep(1)
    second = world.job().begin()
    world.hide(key_of(2))
    world.settle()

    assert second.leftover not in data_files(world)


def test_a_later_attempt_is_never_cleaned_by_a_settler_of_an_earlier_one() -> None:
    """While a write is open none of its files is deleted."""
    world = World()
    world.job().begin()
    world.settle()
    second = world.job().begin()

    assert world.recovery().clean(world.key) == 0

    assert second.leftover in data_files(world)
    assert {file.key for file in second.files} <= data_files(world)
