"""Several attempts of a write that has no document."""

from __future__ import annotations

import dataclasses
import weakref
from typing import TYPE_CHECKING

import pytest

from safewriter.errors import UsageError
from safewriter.objects.store import PAGE
from safewriter.record import checkpoints
from safewriter.record.announcements import announcements
from safewriter.record.document import CommitPoint, Status
from safewriter.record.marker import Marker
from safewriter.settle import sweeper
from safewriter.settle.one_write import Action, Inspection, settle_one
from safewriter.settle.override import override
from safewriter.settle.recovery import Cause
from safewriter.settle.sweeper import Sweeper
from tests.unit.safewriter.failing import Network
from tests.unit.safewriter.settle.unclaimed import DAYS, close, marker_of, vanish
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safewriter.objects import ListedObject
    from safewriter.record.checkpoints import Announced, ListedMarker

HOUR = 3600


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
    monkeypatch.setattr(sweeper, "_WRITES_MAX", 1)
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


def test_all_markers_of_a_write_that_gets_a_verdict_go() -> None:
    """None of its attempts can come back, so no marker is needed any more."""
    world = World()
    world.job().begin().land()
    world.job().claimer.announce()
    world.grace_passes()
    vanish(world)

    found = close(world)

    assert found.action is Action.SETTLED
    assert world.marked() == ()


def test_the_markers_of_a_write_without_a_document_stay_for_two_hours() -> None:
    """A claim may still come, of an attempt whose clock is far behind; the markers are as old as S3 says."""
    world = World()
    world.job().claimer.announce()
    world.sleep(HOUR)
    younger = world.job()
    younger.claimer.announce()
    world.sleep(HOUR)
    assert (close(world).action, len(world.marked())) == (Action.UNCLAIMED, 2)

    world.sleep(1)
    assert (close(world).action, world.marked()) == (Action.UNCLAIMED, (younger.attempt.nonce,))
    world.sleep(HOUR)
    assert (close(world).action, world.marked()) == (Action.UNCLAIMED, ())
    assert close(world).action is Action.NONE
    assert world.checkpoints.read(world.key) is None


@pytest.mark.parametrize("has_document", [False, True])
def test_more_markers_than_attempts_can_have_put_are_not_listed(
    monkeypatch: pytest.MonkeyPatch, *, has_document: bool
) -> None:
    """Their number has no other bound, and a list of them would fill a settler's memory."""
    monkeypatch.setattr(checkpoints, "_MARKERS_MAX", 2)
    world = World()
    if has_document:
        world.job().begin()
    listed: list[str] = []
    for number in range(4):
        world.bucket.put(f"open/{world.key}/{number}", b"{}")
    list_all = world.bucket.list

    def counted(prefix: str, *, start_after: str = "", at_once: int = PAGE) -> Iterator[ListedObject]:
        for entry in list_all(prefix, start_after=start_after, at_once=at_once):
            listed.append(entry.key)
            yield entry

    world.bucket.list = counted  # type: ignore[method-assign]
    world.grace_passes()

    found = settle_one(world.checkpoints, world.recovery(), world.key, Cause.SWEEPER, world.clock)

    assert (found.action, len(listed)) == (Action.UNREADABLE, 3)
    assert "more than 2 markers" in str(found.problem)
    if not has_document:
        with pytest.raises(UsageError, match="more than 2 markers"):
            override(world.checkpoints, world.key, Status.ROLLED_BACK, "looked at it", world.clock)


def test_a_settler_holds_one_marker_beside_the_youngest() -> None:
    """Each may be as large as a document."""
    world = World()
    alive: list[weakref.ref[Marker]] = []
    most: list[int] = []
    for _ in range(5):
        world.job().claimer.announce()
    world.grace_passes()
    read = world.checkpoints.announced

    def counted(marker: ListedMarker) -> Announced | None:
        found = read(marker)
        assert found is not None
        watched = Watched(**dataclasses.asdict(found.marker))
        alive.append(weakref.ref(watched))
        most.append(sum(one() is not None for one in alive))
        return dataclasses.replace(found, marker=watched)

    world.checkpoints.announced = counted  # type: ignore[method-assign]

    assert announcements(world.checkpoints, world.key, world.clock).youngest is not None
    assert len(alive) == 5
    assert max(most) <= 3


class Watched(Marker):
    """A marker of which a weak reference can be made."""


def test_a_write_whose_markers_take_too_long_stays_open() -> None:
    """Whoever puts hundreds of markers gives the write no more than its share of the time."""
    world = World()
    for _ in range(3):
        world.job().claimer.announce()
    world.grace_passes()
    tickets = iter(range(2))
    recovery = world.recovery(may_go_on=lambda: next(tickets, None) is not None)

    found = settle_one(world.checkpoints, recovery, world.key, Cause.SWEEPER, world.clock)

    assert found.action is Action.FAILED
    assert "could not be read in time" in str(found.problem)
    assert world.checkpoints.read(world.key) is None
    assert len(world.marked()) == 3


def test_markers_beside_a_verdict_are_looked_at_while_there_is_time() -> None:
    """The verdict stands, and the next settler goes on with the other markers."""
    world = World()
    assert world.job().run()
    for _ in range(3):
        world.job().claimer.announce()
    world.sleep(2 * DAYS)
    recovery = world.recovery(may_go_on=lambda: len(world.marked()) > 2)

    found = settle_one(world.checkpoints, recovery, world.key, Cause.SWEEPER, world.clock)

    assert (found.action, world.document.status) == (Action.UNCLEAN, Status.COMMITTED)
    assert len(world.marked()) == 2


@pytest.mark.parametrize(("lands", "action"), [(True, Action.SETTLED), (False, Action.UNCLAIMED)])
def test_old_markers_go_while_there_is_time(*, lands: bool, action: Action) -> None:
    """The next sweep finds the others."""
    world = World()
    for _ in range(2):
        world.job().claimer.announce()
    job = world.job().begin()
    if lands:
        job.land()
    vanish(world)
    world.sleep(2 * DAYS)
    recovery = world.recovery(may_go_on=lambda: len(world.marked()) > 2)

    assert settle_one(world.checkpoints, recovery, world.key, Cause.SWEEPER, world.clock).action is action
    assert len(world.marked()) == 2


def test_what_was_fenced_gets_no_document_and_may_be_claimed() -> None:
    """The table itself refuses the fenced attempts."""
    world = World()
    world.job().begin()
    world.settle()
    world.job().begin()
    world.grace_passes()
    assert world.settle().status is Status.ROLLED_BACK
    vanish(world)
    world.job().claimer.announce()
    world.grace_passes()

    assert close(world).action is Action.UNCLAIMED
    assert world.job().run()
    assert world.document.status is Status.COMMITTED


def test_a_look_that_finds_nothing_writes_nothing() -> None:
    """A request that says so could arrive behind the commit of a retry, whose document somebody has deleted."""
    world, network = World(), Network()
    world.job().claimer.announce()
    world.grace_passes()

    assert close(world, network) == Inspection(
        Action.UNCLAIMED, "the table holds nothing of it", marker=marker_of(world)
    )
    assert [sent for sent in network.sent if sent.mutates] == []


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
