from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import pytest

from safewriter.errors import TryAgainError
from safewriter.identity import Attempt
from safewriter.objects import ListedObject, StoreError
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import CommitPoint, Status
from safewriter.record.marker import Marker
from safewriter.settle.inspection import Action
from safewriter.settle.override import override
from safewriter.settle.recovery import Cause, Recovery
from safewriter.settle.sweeper import Look, Sweep, Sweeper
from tests.support.memory_store import MemoryObjectStore
from tests.unit.safewriter.delta_log import key_of
from tests.unit.safewriter.failing import Network
from tests.unit.safewriter.invariants import check
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def forever() -> bool:
    return True


def sweep(
    world: World, *, network: Network | None = None, may_go_on: Callable[[], bool] = forever, draw: float = 0.5
) -> Sweep:
    """Sweep once, as a process of its own."""
    checkpoints = Checkpoints((network or Network()).store(world.bucket))
    recovery = world.recovery(network, may_go_on=may_go_on)
    return Sweeper(checkpoints, recovery, world.clock, may_go_on, draw=lambda: draw, threads=1).sweep()


def look(world: World) -> Look:
    """Sweep a bucket with one write."""
    (found,) = sweep(world).looks
    return found


@pytest.mark.parametrize(
    ("commit_point", "landed", "status"),
    [
        (CommitPoint.WRITE, False, Status.ROLLED_BACK),
        (CommitPoint.WRITE, True, Status.COMMITTED),
        (CommitPoint.SUCCESS, True, Status.ROLLED_BACK),
    ],
)
def test_a_dead_write_is_settled_then_cleaned_and_then_it_costs_nothing(
    commit_point: CommitPoint, status: Status, *, landed: bool
) -> None:
    """Its marker stays until the grace is over, and then goes with the files."""
    world = World(commit_point)
    job = world.job().begin()
    if landed:
        job.land()
    world.owner_dies()

    found = look(world)
    assert (found.action, found.status) == (Action.SETTLED, status)
    assert world.document.attempt.settled_by == Cause.SWEEPER.value
    assert world.marked() == (job.attempt.nonce,)
    assert look(world).action is Action.CLEANED
    world.grace_passes()
    assert look(world).action is Action.CLEANED
    assert world.marked() == ()
    assert sweep(world).looks == ()
    assert not any(key.startswith("leases/") for key in world.bucket.contents())
    check(world)


def test_what_lives_is_left_alone_and_its_age_is_told() -> None:
    """Not a byte changes."""
    world = World()
    world.job().begin()
    began = world.now()
    before = world.bucket.contents() | world.lake.contents()
    found = sweep(world)
    assert [one.action for one in found.looks] == [Action.ALIVE]
    assert found.open_since == began
    assert world.bucket.contents() | world.lake.contents() == before


def test_a_retry_that_has_claimed_since_the_look_is_left_alone() -> None:
    """Dead is the attempt that was found dead, not whoever owns the write a moment later."""
    world = World()
    world.job().begin()
    world.owner_dies()

    def overtake(number: int) -> None:
        if number == lease:
            world.settle(Cause.RETRY)
            world.job().begin()

    probe = Network()
    sweep_copy = World()
    sweep_copy.job().begin()
    sweep_copy.owner_dies()
    sweep(sweep_copy, network=probe)
    lease = 1 + next(number for number, sent in enumerate(probe.sent, 1) if sent.key.startswith("leases/"))

    sweep(world, network=Network(before=overtake))
    assert (world.document.status, world.document.epoch) == (Status.IN_PROGRESS, 2)


def test_an_attempt_that_died_before_its_claim_is_closed_and_cannot_claim_any_more() -> None:
    """Even a claim that was sent before and lands later loses; a healthy retry does not."""
    world = World()
    frozen = world.job()
    before = frozen.state()
    frozen.claimer.mark()

    assert look(world).action is Action.ALIVE
    world.grace_passes()
    found = look(world)
    assert (found.action, found.status) == (Action.SETTLED, Status.ROLLED_BACK)
    assert world.document.reason == "sweeper: the attempt ended before it had claimed the write"
    assert world.marked() == ()
    late = frozen.claimer
    with pytest.raises(TryAgainError):
        late.claim(before)
    assert frozen.checkpoints.create(late._first(before)) is None
    assert world.job().run()
    assert world.document.status is Status.COMMITTED


def test_a_clean_up_after_a_write_that_was_closed_before_its_claim_reads_what_came_since_its_own() -> None:
    """The attempt that never claimed has written nothing, so nobody looks back to the table's first version for it."""
    world = World()
    world.job().claimer.mark()
    world.grace_passes()
    assert look(world).action is Action.SETTLED
    world.append_foreign()
    world.job().begin()
    world.grace_passes()
    network = Network()

    assert world.settle(network=network).status is Status.ROLLED_BACK
    assert world.recovery(network).clean(world.key) == 0
    read = {sent.key for sent in network.sent if sent.verb == "get"}
    assert read.isdisjoint({key_of(version) for version in range(world.log.head - 1)})
    assert world.document.attempt.cleaned


def test_an_attempt_without_a_deadline_is_waited_for_for_a_day() -> None:
    """A claim takes seconds."""
    world = World()
    world.job(deadline_ms=None).claimer.mark()
    world.sleep(23 * 3600)
    assert look(world).action is Action.ALIVE
    world.sleep(2 * 3600)
    assert look(world).action is Action.SETTLED


def test_a_claim_that_comes_between_is_left_alone() -> None:
    """The tombstone loses, and the marker stays."""
    world = World()
    first = world.job()
    first.claimer.mark()
    world.grace_passes()
    late = world.job()

    def overtake(_: int) -> None:
        if network.sent[-1].verb == "create":
            late.claim()

    network = Network(before=overtake)
    sweep(world, network=network)
    assert world.document.owner == late.attempt.nonce
    assert set(world.marked()) == {first.attempt.nonce, late.attempt.nonce}


def test_a_write_that_landed_stays_counted_as_failed_until_somebody_decides() -> None:
    """Its document has expired, and the table alone does not decide: the alarm must not clear itself."""
    world = World(CommitPoint.SUCCESS)
    world.job().begin().land()
    world.grace_passes()
    world.bucket.delete(f"checkpoints/{world.key}.json")
    for _ in range(2):
        found = sweep(world)
        assert found.count(Action.FAILED) == 1
        assert found.open_since is not None
    override(world.checkpoints, world.key, Status.COMMITTED, "looked", world.clock)
    assert sweep(world).looks == ()


def test_a_marker_that_a_settled_write_does_not_know_goes_when_its_time_is_over() -> None:
    """An attempt that found the work done, and died before it took its marker away; its late claim loses."""
    world = World()
    assert world.job().run()
    world.grace_passes()
    sweep(world)
    second = world.job()
    second.claimer.mark()
    stored = world.checkpoints.read(world.key)
    assert stored is not None
    assert look(world).action is Action.ALIVE
    assert world.marked() == (second.attempt.nonce,)
    world.grace_passes()
    assert look(world).action is Action.NONE
    assert world.marked() == ()
    assert world.checkpoints.replace(stored, stored.document) is None


def test_a_marker_that_an_open_write_does_not_know_goes_without_a_change_of_the_document() -> None:
    """Its owner needs the document as it has read it."""
    world = World()
    stranger = world.job(deadline_ms=1_000 + 30_000)
    stranger.claimer.mark()
    world.sleep(120)
    owner = world.job().begin()
    assert set(world.marked()) == {stranger.attempt.nonce, owner.attempt.nonce}
    assert look(world).action is Action.ALIVE
    assert world.marked() == (owner.attempt.nonce,)
    owner.land()
    assert owner.success()


def test_a_document_of_a_later_version_is_left_and_counted() -> None:
    """So is a marker of one."""
    world = World()
    job = world.job().begin()
    world.grace_passes()
    body = json.loads(world.bucket.contents()[f"checkpoints/{world.key}.json"])
    world.bucket.put(f"checkpoints/{world.key}.json", json.dumps({**body, "schema_version": 99}).encode())
    world.bucket.put("open/sw-later/a", b'{"schema_version": 99}')
    before = world.bucket.contents()
    found = sweep(world)
    assert [one.action for one in found.looks] == [Action.UNREADABLE, Action.UNREADABLE]
    assert found.open_since is not None
    assert world.bucket.contents() == before
    assert job.attempt.nonce in world.marked()


def test_a_write_whose_log_cannot_be_read_fails_and_stays_open() -> None:
    """The next sweep looks again; the others are looked at all the same."""
    world = World()
    world.job().begin().land()
    world.owner_dies()
    world.lake.put(f"_delta_log/{world.log.head:020}.json", b"{")
    settled = dataclasses.replace(world.document, write_key="sw-other", status=Status.COMMITTED)
    world.checkpoints.create(settled.cleaned([settled.owner], 0))
    world.bucket.put(f"open/sw-other/{settled.owner}", b"{}")
    found = sweep(world)
    assert {one.write_key: one.action for one in found.looks} == {world.key: Action.FAILED, "sw-other": Action.NONE}
    assert world.document.status is Status.IN_PROGRESS


@pytest.mark.parametrize("note", [b"no JSON", b"\xff", b"[]\n", b'{"metaData": 1'])
def test_one_write_that_is_not_understood_does_not_hold_up_the_others(note: bytes) -> None:
    """Its note is damaged; it is counted as failed, and the other write is settled."""
    world = World(existing=False)
    job = world.job().begin()
    world.bucket.put(job.checkpoints.note_key(world.key, 1), note + b'"metaData"')
    other = dataclasses.replace(world.write, step="another")
    marker = Marker.of(other, Attempt.draw(), CommitPoint.WRITE, started_ms=world.now_ms, deadline_ms=world.now_ms)
    world.checkpoints.mark(marker)
    world.grace_passes()

    looks = {found.write_key: found for found in sweep(world).looks}

    assert (looks[world.key].action, looks[world.key].status) == (Action.FAILED, Status.IN_PROGRESS)
    assert looks[world.key].problem
    assert looks[other.key].action is Action.SETTLED
    assert world.document.status is Status.IN_PROGRESS


def test_a_dropped_table_is_given_up_after_a_week() -> None:
    """Until then somebody may bring it back; after it `soal orphans` finds what is left."""
    world = World()
    job = world.job().begin()
    world.owner_dies()
    world.settle()
    for key in [key for key in world.lake.contents() if key.startswith("_delta_log/")]:
        world.lake.delete(key)
    world.grace_passes()
    assert look(world).action is Action.UNCLEAN
    assert world.marked() == (job.attempt.nonce,)
    world.sleep(8 * 24 * 3600)
    assert look(world).action is Action.UNCLEAN
    assert world.marked() == ()


def test_a_lease_that_was_renewed_after_the_clean_up_goes_a_day_later() -> None:
    """Its supervisor did not know yet that the block had ended; and one of a handler that was killed goes, too."""
    world = World()
    job = world.job()
    assert job.run()
    world.grace_passes()
    sweep(world)
    world.checkpoints.renew_lease(world.key, job.attempt.nonce)
    world.bucket.put("leases/run-1/2", b"alive")
    world.sleep(23 * 3600)
    world.bucket.put("leases/run-3/4", b"alive")
    sweep(world)
    assert len([key for key in world.bucket.contents() if key.startswith("leases/")]) == 3
    world.sleep(2 * 3600)
    sweep(world, may_go_on=lambda: False)
    assert len([key for key in world.bucket.contents() if key.startswith("leases/")]) == 3
    sweep(world)
    assert [key for key in world.bucket.contents() if key.startswith("leases/")] == ["leases/run-3/4"]


def test_a_sweep_whose_leases_cannot_be_listed_is_a_sweep(caplog: pytest.LogCaptureFixture) -> None:
    """Its role may be of before it was to list them."""
    world = World()
    world.job().begin()
    world.owner_dies()

    class Unlistable(MemoryObjectStore):
        def list(self, prefix: str, *, start_after: str = "") -> Iterator[ListedObject]:
            if prefix == "leases/":
                raise StoreError("AccessDenied", denied=True)
            return super().list(prefix, start_after=start_after)

    bucket = Unlistable(world.now)
    bucket._objects = world.bucket._objects
    checkpoints = Checkpoints(bucket)
    recovery = Recovery(checkpoints, lambda _: world.lake, clock=world.clock)
    found = Sweeper(checkpoints, recovery, world.clock, forever, threads=1).sweep()
    assert found.count(Action.SETTLED) == 1
    assert "old leases stay" in caplog.text


def test_finished_writes_cost_nothing() -> None:
    """A hundred and ten thousand of them take the same requests, and nothing but markers is listed."""

    def requests(finished: int) -> list[str]:
        world = World()
        world.job().begin()
        world.owner_dies()
        body = world.bucket.contents()[f"checkpoints/{world.key}.json"]
        for number in range(finished):
            world.bucket._objects[f"checkpoints/sw-{number:032x}.json"] = (body, '"x"', world.now())
        network = Network()
        sweep(world, network=network)
        assert not any(sent.verb == "list" and sent.key.startswith("checkpoints") for sent in network.sent)
        return [f"{sent.verb} {sent.key}" for sent in network.sent]

    assert requests(100) == requests(10_000)


def test_a_backlog_is_worked_off_over_several_sweeps_from_both_ends() -> None:
    """Each sweep has time for a third of two thousand; the oldest and the newest are in the first."""
    world = World(existing=False)
    job = world.job()
    job.claimer.mark()
    marker = json.loads(world.bucket.contents()[f"open/{world.key}/{job.attempt.nonce}"])
    keys = []
    for number in range(2_000):
        world.sleep(1)
        keys.append(f"sw-{(number * 7919) % 10_007:032x}")
        body = json.dumps({**marker, "write_key": keys[-1]}).encode()
        world.bucket.put(f"open/{keys[-1]}/{job.attempt.nonce}", body)
    world.grace_passes()

    def once(draw: float) -> Sweep:
        tickets = iter(range(680))
        return sweep(world, may_go_on=lambda: next(tickets, None) is not None, draw=draw)

    first = once(0.9)
    settled = {one.write_key for one in first.looks if one.action is Action.SETTLED}
    assert len(first.looks) == 2_001
    assert first.count(Action.LEFT) == 2_001 - 680
    assert {keys[0], keys[1], keys[-1], keys[-2]} <= settled
    assert first.open_since is not None
    assert once(0.1).count(Action.LEFT) == 2_001 - 2 * 680
    assert once(0.5).count(Action.LEFT) == 0
    assert world.marked() == ()
