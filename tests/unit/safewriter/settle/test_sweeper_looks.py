"""What the inspection of a write reports, and the order of inspections."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.identity import Attempt
from safewriter.objects import StoreError
from safewriter.objects.store import PAGE
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import CommitPoint, Status
from safewriter.record.marker import Marker
from safewriter.settle import one_write, sweeper
from safewriter.settle.one_write import Action, settle_or_clean
from safewriter.settle.recovery import Cause, Evidence
from safewriter.settle.sweeper import Look, Sweep, Sweeper
from tests.unit.safewriter.failing import Network
from tests.unit.safewriter.settle.sweeps import look, sweep
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from safewriter.objects import ListedObject
    from safewriter.record.checkpoints import StoredCheckpoint

DAY_S = 86_400


def at(hour: int) -> datetime:
    return datetime(2026, 1, 1, hour, tzinfo=UTC)


def raising(error: Exception) -> Callable[..., Any]:
    def call(*_: object, **__: object) -> None:
        raise error

    return call


def stored(world: World) -> StoredCheckpoint:
    found = world.checkpoints.read(world.key)
    assert found is not None
    return found


def announced(world: World, *, deadline_ms: int | None) -> str:
    """Announce an attempt that has not claimed; return its nonce."""
    attempt = Attempt.draw()
    world.checkpoints.mark(
        Marker.of(world.write, attempt, CommitPoint.WRITE, started_ms=world.now_ms, deadline_ms=deadline_ms)
    )
    return attempt.nonce


def done(world: World) -> None:
    """An attempt that was rolled back and cleaned up after, whose marker has stayed."""
    job = world.job().begin()
    world.settle(evidence=Evidence(requests_ended=True))
    world.bucket.put(f"open/{world.key}/{job.attempt.nonce}", b"{}")


def test_the_oldest_undecided_write_tells_since_when_something_is_open() -> None:
    """Settled writes do not count, nor those that nobody has claimed, nor those of unknown age."""
    looks = (
        Look("sw-1", Action.SETTLED, since=at(1)),
        Look("sw-2", Action.ALIVE, since=at(4)),
        Look("sw-3", Action.FAILED, since=at(3)),
        Look("sw-4", Action.LEFT),
        Look("sw-5", Action.UNCLAIMED, since=at(2)),
    )

    assert Sweep(looks).open_since == at(3)
    assert Sweep(looks[:1]).open_since is None


def test_a_write_is_as_old_as_its_first_marker() -> None:
    """A retry makes it no younger."""
    world = World()
    began = world.now()
    for _ in range(2):
        world.job(deadline_ms=None).claimer.announce()
        world.sleep(5)

    (found,) = sweep(world).looks
    assert (found.action, found.since) == (Action.ALIVE, began)


def test_what_time_did_not_suffice_for_is_left_with_its_age() -> None:
    """None of its objects is read."""
    world, network = World(), Network()
    world.job().begin()
    began = world.now()

    found = sweep(world, network=network, may_go_on=lambda: False)

    assert found.looks == (Look(world.key, Action.LEFT, since=began),)
    assert [sent.verb for sent in network.sent if sent.verb != "list"] == []


def test_a_write_that_cannot_be_settled_is_failed_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Because of the table, of the time, or of the checkpoint bucket."""
    world = World()
    world.job().begin()
    world.owner_dies()
    found = stored(world)
    late = world.recovery(may_go_on=lambda: False)

    action, problem = settle_or_clean(world.checkpoints, late, found, Cause.OPERATOR)
    assert action is Action.FAILED
    assert problem is not None
    assert "could not be settled in time" in problem
    monkeypatch.setattr(Checkpoints, "sighting", raising(StoreError("denied")))
    assert settle_or_clean(world.checkpoints, world.recovery(), found, Cause.OPERATOR) == (Action.FAILED, "denied")


def test_one_attempt_that_is_not_clean_is_enough_for_a_clean_up() -> None:
    """The others were cleaned before."""
    world = World()
    done(world)
    world.job().begin()
    world.settle()

    assert settle_or_clean(world.checkpoints, world.recovery(), stored(world), Cause.SWEEPER) == (Action.CLEANED, None)


def test_what_cannot_be_cleaned_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict stands; the next sweep retries."""
    world = World()
    world.job().begin()
    world.settle()
    monkeypatch.setattr(world.lake, "list", raising(StoreError("denied")))

    found = look(world)

    assert (found.action, found.status, found.problem) == (Action.UNCLEAN, Status.ROLLED_BACK, "denied")


@pytest.mark.parametrize(("draw", "first"), [(0.0, "sw-0001"), (0.5, "sw-9000"), (0.9, "sw-0001")])
def test_a_sweep_that_has_no_time_to_list_all_begins_somewhere_else_each_time(
    monkeypatch: pytest.MonkeyPatch, draw: float, first: str
) -> None:
    """So no write waits for ever behind others."""
    monkeypatch.setattr(sweeper, "_LISTING_MS", 1000)
    world = World()
    for key in ("sw-0001", "sw-9000"):
        world.bucket.put(f"open/{key}/n", b"{}")
    assert keys_of_a_slow_sweep(world, draw) == [first]


def test_a_sweep_may_begin_between_any_two_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever knows a write's key can put markers right before it."""
    monkeypatch.setattr(sweeper, "_LISTING_MS", 1000)
    world = World()
    before, hidden = f"sw-8{'0' * 10}1{'0' * 20}", f"sw-8{'0' * 10}3{'0' * 20}"
    for key in (before, hidden):
        world.bucket.put(f"open/{key}/n", b"{}")
    assert keys_of_a_slow_sweep(world, 0.5 + 2 / 16**12) == [hidden]


def test_no_number_of_markers_in_front_of_a_write_hides_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep takes any of those that it lists, although it cannot take all."""
    monkeypatch.setattr(sweeper, "_WRITES_MAX", 2)
    world = World()
    for number in range(50):
        world.bucket.put(f"open/sw-{number:032x}/n", b"{}")
    draws = iter((0.0, *(1 - number / 100 for number in range(50))))

    found = Sweeper(
        world.checkpoints, world.recovery(), world.clock, lambda: True, draw=lambda: next(draws), threads=1
    ).sweep()

    assert [look.write_key for look in found.looks] == [f"sw-{number:032x}" for number in (49, 48)]


def keys_of_a_slow_sweep(world: World, draw: float) -> list[str]:
    """Sweep while the listing takes a second for each marker."""
    list_all = world.bucket.list

    def listed(prefix: str, *, start_after: str = "", at_once: int = PAGE) -> Iterator[ListedObject]:
        for entry in list_all(prefix, start_after=start_after, at_once=at_once):
            yield entry
            world.sleep(1)

    world.bucket.list = listed  # type: ignore[method-assign]
    one = Sweeper(world.checkpoints, world.recovery(), world.clock, lambda: True, draw=lambda: draw, threads=1)
    return [look.write_key for look in one.sweep().looks]


@pytest.mark.parametrize(("error", "problem"), [(StoreError("denied"), "denied"), (KeyError("x"), "KeyError('x')")])
def test_whatever_a_look_meets_is_told(monkeypatch: pytest.MonkeyPatch, error: Exception, problem: str) -> None:
    """An unexpected error is reported with its type, since its text alone may say nothing."""
    world = World()
    world.job().begin()
    monkeypatch.setattr(Checkpoints, "read", raising(error))

    found = look(world)

    assert (found.action, found.problem, found.since) == (Action.FAILED, problem, world.now())


def test_a_finished_write_is_read_once() -> None:
    """The inspection that removes its last marker needs one read, since nothing has changed in between."""
    world, network = World(), Network()
    done(world)

    assert [found.action for found in sweep(world, network=network).looks] == [Action.NONE]
    assert [sent.key for sent in network.sent if sent.verb == "get"] == [f"checkpoints/{world.key}.json"]
    assert world.marked() == ()


def test_a_document_that_goes_away_while_it_is_looked_after_is_told_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody has removed it; the inspection has done its work."""
    world = World()
    world.job().begin()

    def settle_or_clean(*_: object) -> tuple[Action, None]:
        world.bucket.delete(f"checkpoints/{world.key}.json")
        return Action.SETTLED, None

    monkeypatch.setattr(one_write, "settle_or_clean", settle_or_clean)

    assert look(world).action is Action.SETTLED


def test_beside_a_finished_attempt_one_that_has_not_claimed_keeps_its_marker() -> None:
    """The first one's marker goes, the other's stays."""
    world = World()
    done(world)
    nonce = announced(world, deadline_ms=world.now_ms + 600_000)

    assert look(world).action is Action.UNCLAIMED
    assert world.marked() == (nonce,)


@pytest.mark.parametrize(("waited_s", "action"), [(DAY_S, Action.ALIVE), (DAY_S + 1, Action.UNCLAIMED)])
def test_an_attempt_without_a_deadline_may_claim_for_a_day(waited_s: int, action: Action) -> None:
    """And its age is reported."""
    world = World()
    announced(world, deadline_ms=None)
    began = world.now()
    world.sleep(waited_s)

    found = look(world)

    assert (found.action, found.since) == (action, began)


def test_a_claim_that_wins_against_the_sweep_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its document was created first."""
    world = World()
    began = world.now()
    world.job().begin().land()
    world.bucket.delete(f"checkpoints/{world.key}.json")
    world.grace_passes()
    monkeypatch.setattr(Checkpoints, "create", lambda *_: None)

    assert look(world) == Look(world.key, Action.ALIVE, since=began)
