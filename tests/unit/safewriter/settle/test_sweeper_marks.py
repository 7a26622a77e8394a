"""Which markers a sweep removes: those of attempts that can send nothing more, if their write is not open."""

from __future__ import annotations

from safewriter.settle.one_write import Action
from safewriter.settle.sweeper import Look, Sweep
from tests.unit.safewriter.delta_log import key_of
from tests.unit.safewriter.settle.sweeps import look
from tests.unit.safewriter.world import World

DAY_S = 86_400


def test_a_write_that_stays_open_keeps_its_marker_however_old() -> None:
    """Its log may not decide for weeks; without the marker no sweeper would find it again."""
    world = World()
    job = world.job().begin()
    for _ in range(2):
        world.append_foreign()
    world.hide(key_of(2))
    world.sleep(30 * DAY_S)

    for _ in range(2):
        assert look(world).action in {Action.SETTLED, Action.FAILED}
        assert world.marked() == (job.attempt.nonce,)


def test_a_write_is_found_again_after_its_announcement_was_lost() -> None:
    """A marker that goes away between the listing and the look leaves nothing to do."""
    world = World()
    job = world.job()
    job.claimer.announce()
    gone = world.bucket.contents()[f"open/{world.key}/{job.attempt.nonce}"]
    assert gone
    world.sleep(2 * DAY_S)
    store = world.bucket
    get = store.get
    store.get = lambda key, **_: None if key.startswith("open/") else get(key)  # type: ignore[method-assign]

    assert look(world).action is Action.NONE


def test_looks_are_counted_by_what_came_of_them() -> None:
    """Of several actions at once, too; other actions do not count."""
    found = Sweep(tuple(Look("sw-1", action) for action in (Action.SETTLED, Action.FAILED, Action.SETTLED)))

    assert found.count(Action.SETTLED) == 2
    assert found.count(Action.SETTLED, Action.FAILED) == 3
    assert found.count(Action.LEFT) == 0


def test_what_is_cleaned_and_what_never_claimed_go_with_one_look() -> None:
    """The inspection that has changed the document knows its new state."""
    world = World()
    world.job().begin()
    world.settle()
    world.job().claimer.announce()
    world.sleep(DAY_S + 1)

    assert look(world).action is Action.CLEANED
    assert world.marked() == ()
