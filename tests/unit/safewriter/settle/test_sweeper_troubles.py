"""Writes that a sweep cannot read or settle are counted, and do not delay the others."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.identity import Attempt
from safewriter.objects import ListedObject, StoreError
from safewriter.objects.store import PAGE
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import CommitPoint, Status
from safewriter.record.marker import Marker
from safewriter.settle.one_write import Action
from safewriter.settle.override import override
from safewriter.settle.recovery import Recovery
from safewriter.settle.sweeper import Look, Sweeper
from tests.support.memory_store import MemoryObjectStore
from tests.unit.safewriter.record.samples import named
from tests.unit.safewriter.settle.sweeps import forever, look, sweep
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safewriter.record.document import Checkpoint


def another(world: World) -> Checkpoint:
    """Return a committed document like that of the world's write."""
    return named(dataclasses.replace(world.document, status=Status.COMMITTED), step="another")


def test_a_write_that_landed_stays_counted_as_failed_until_somebody_decides() -> None:
    """Its document has expired, and the table alone does not decide: the alarm must not end by itself."""
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
    """The next sweep retries; the other writes are still inspected."""
    world = World()
    world.job().begin().land()
    world.owner_dies()
    world.lake.put(f"_delta_log/{world.log.head:020}.json", b"{")
    settled = another(world)
    world.checkpoints.create(settled.cleaned([settled.owner], 0))
    world.bucket.put(f"open/{settled.write_key}/{settled.owner}", b"{}")
    found = sweep(world)
    assert {one.write_key: one.action for one in found.looks} == {
        world.key: Action.FAILED,
        settled.write_key: Action.NONE,
    }
    assert world.document.status is Status.IN_PROGRESS


@pytest.mark.parametrize("note", [b"no JSON", b"\xff", b"[]\n", b'{"metaData": 1'])
def test_one_write_that_is_not_understood_does_not_hold_up_the_others(note: bytes) -> None:
    """Its note is damaged; it is counted as failed, and the sweep looks at the other write."""
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
    assert looks[other.key].action is Action.UNCLAIMED
    assert world.document.status is Status.IN_PROGRESS


def test_a_dropped_table_is_given_up_after_a_week() -> None:
    """Until then somebody may restore it; after that `soal orphans` finds the leftovers."""
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


def test_a_sweep_whose_leases_cannot_be_listed_is_a_sweep(caplog: pytest.LogCaptureFixture) -> None:
    """An older role may lack the right to list them."""
    world = World()
    world.job().begin()
    world.owner_dies()

    class Unlistable(MemoryObjectStore):
        def list(self, prefix: str, *, start_after: str = "", at_once: int = PAGE) -> Iterator[ListedObject]:
            if prefix == "leases/":
                raise StoreError("AccessDenied", denied=True)
            return super().list(prefix, start_after=start_after, at_once=at_once)

    bucket = Unlistable(world.now)
    bucket._objects = world.bucket._objects
    checkpoints = Checkpoints(bucket)
    recovery = Recovery(checkpoints, lambda _: world.lake, clock=world.clock)
    found = Sweeper(checkpoints, recovery, world.clock, forever, threads=1).sweep()
    assert found.count(Action.SETTLED) == 1
    assert "old leases stay" in caplog.text


def test_a_table_with_a_hostile_log_stays_open_and_hides_no_other() -> None:
    """Its commit would take hundreds of megabytes: it is counted as failed, nothing is written, the next is settled."""
    world = World()
    world.job().begin()
    world.owner_dies()
    world.lake.put(f"_delta_log/{world.log.head + 1:020}.json", b'{"commitInfo":{"x":[' + b"{}," * 1_000_000 + b"{}]}}")
    other = another(world)
    world.checkpoints.create(other.cleaned([other.owner], 0))
    world.bucket.put(f"open/{other.write_key}/{other.owner}", b"{}")
    before = world.lake.contents()
    told: list[Look] = []
    recovery = world.recovery()

    Sweeper(world.checkpoints, recovery, world.clock, forever, threads=1, on_look=told.append).sweep()

    assert {one.write_key: one.action for one in told} == {world.key: Action.FAILED, other.write_key: Action.NONE}
    assert "bytes of memory" in str(next(one.problem for one in told if one.write_key == world.key))
    assert world.document.status is Status.IN_PROGRESS
    assert world.lake.contents() == before


@pytest.mark.parametrize("folder", ["checkpoints", "open", "leases"])
@pytest.mark.parametrize("body", [b'{"schema_version":1,"x":[' + b"{}," * 1_000_000 + b"{}]}", b" " * (5 << 20)])
def test_an_object_without_end_is_not_read_into_memory(folder: str, body: bytes) -> None:
    """A settler counts its write, leaves the object as it is, and looks at the other write."""
    world = World()
    job = world.job().begin()
    other = dataclasses.replace(world.write, step="another")
    marker = Marker.of(other, Attempt.draw(), CommitPoint.WRITE, started_ms=world.now_ms, deadline_ms=world.now_ms)
    world.checkpoints.mark(marker)
    name = ".json" if folder == "checkpoints" else f"/{job.attempt.nonce}"
    world.bucket.put(large := f"{folder}/{world.key}{name}", body)
    if folder == "open":
        world.bucket.delete(f"checkpoints/{world.key}.json")
    world.grace_passes()

    def limited(key: str, *, max_bytes: int | None = None) -> Any:
        assert max_bytes is not None
        assert max_bytes < 5 << 20
        return get(key, max_bytes=max_bytes)

    get, world.bucket.get = world.bucket.get, limited  # type: ignore[method-assign]
    looks = {one.write_key: one.action for one in sweep(world).looks}

    assert looks.pop(other.key) is Action.UNCLAIMED
    assert looks.get(world.key) in ((Action.UNREADABLE,) if folder != "leases" else (Action.SETTLED, Action.FAILED))
    assert large in world.bucket.contents() or folder == "leases"
