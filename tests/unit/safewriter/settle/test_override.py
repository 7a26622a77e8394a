"""An operator sets a verdict by hand: audited, with a reason, and only on an open write of a dead owner."""

from __future__ import annotations

import json

import pytest

from safewriter.errors import UnknownOutcomeError, UsageError
from safewriter.objects import StoreError
from safewriter.record.document import Status
from safewriter.record.liveness import LEASE_MS
from safewriter.settle.override import override
from tests.unit.safewriter.delta_log import key_of
from tests.unit.safewriter.failing import Fault, Network
from tests.unit.safewriter.world import World


def unknown() -> World:
    """A write whose verdict the log no longer shows."""
    world = World()
    world.job().begin()
    world.append_foreign()
    world.append_foreign()
    world.hide(key_of(2))
    with pytest.raises(UnknownOutcomeError):
        world.settle()
    return world


@pytest.mark.parametrize("verdict", [Status.COMMITTED, Status.ROLLED_BACK])
def test_an_unknown_write_is_decided_by_hand_and_audited(verdict: Status) -> None:
    """Document and audit log record by whom and why."""
    world = unknown()
    document = override(world.checkpoints, world.key, verdict, "counted the rows", world.clock)
    assert (document.status, document.reason) == (verdict, "by hand: counted the rows")
    assert world.document.attempt.settled_by == "by hand"
    line = json.loads(world.bucket.contents()[f"audit/{world.key}-1-by_hand_{verdict.value}.jsonl"])
    assert (line["event"], line["reason"]) == (f"by_hand_{verdict.value}", "by hand: counted the rows")


@pytest.mark.parametrize("status", [Status.IN_PROGRESS, Status.ROLLING_BACK])
def test_an_open_write_of_a_dead_owner_is_decided_by_hand(status: Status) -> None:
    """Settling it may fail for ever, on an unreadable object for example, and leaves the document as it is."""
    world = World()
    world.job().begin()
    world.grace_passes()
    stored = world.checkpoints.read(world.key)
    assert stored is not None
    if status is Status.ROLLING_BACK:
        world.checkpoints.replace(stored, stored.document.moved(status))
    document = override(world.checkpoints, world.key, Status.ROLLED_BACK, "looked", world.clock)
    assert (document.status, world.document.attempt.settled_by) == (Status.ROLLED_BACK, "by hand")


def test_only_an_open_write_of_a_dead_owner_and_only_with_a_reason() -> None:
    """Whatever can be settled is settled from the table; nothing is changed by a refusal."""
    world = unknown()
    with pytest.raises(UsageError, match="no verdict"):
        override(world.checkpoints, world.key, Status.IN_PROGRESS, "why", world.clock)
    with pytest.raises(UsageError, match="reason"):
        override(world.checkpoints, world.key, Status.COMMITTED, " ", world.clock)
    with pytest.raises(UsageError, match="no document"):
        override(world.checkpoints, "sw-other", Status.COMMITTED, "why", world.clock)
    other = World()
    other.job().begin()
    with pytest.raises(UsageError, match="says in_progress, and its owner lives"):
        override(other.checkpoints, other.key, Status.COMMITTED, "why", other.clock)
    done = World()
    assert done.job().run()
    with pytest.raises(UsageError, match="says committed already"):
        override(done.checkpoints, done.key, Status.ROLLED_BACK, "why", done.clock)
    assert (world.document.status, other.document.status) == (Status.UNKNOWN, Status.IN_PROGRESS)
    assert not [key for key in world.bucket.contents() if key.startswith("audit/")]


def test_no_verdict_by_hand_without_its_line() -> None:
    """If the audit log cannot be written, nothing changes."""
    world = unknown()
    network = Network(Fault.REFUSE, 1)
    checkpoints = type(world.checkpoints)(network.store(world.bucket))
    with pytest.raises(StoreError):
        override(checkpoints, world.key, Status.COMMITTED, "why", world.clock)
    assert world.document.status is Status.UNKNOWN


def test_a_document_that_changes_meanwhile_wins() -> None:
    """Another settler has settled it after all."""
    world = unknown()
    put = world.bucket.put

    def overtaken(key: str, body: bytes) -> str:
        stored = world.checkpoints.read(world.key)
        assert stored is not None
        world.checkpoints.replace(stored, stored.document.moved(Status.ROLLED_BACK, reason="found"))
        return put(key, body)

    world.bucket.put = overtaken  # type: ignore[method-assign]
    with pytest.raises(UsageError, match="changed meanwhile"):
        override(world.checkpoints, world.key, Status.COMMITTED, "why", world.clock)
    assert world.document.status is Status.ROLLED_BACK


@pytest.mark.parametrize("verdict", [Status.COMMITTED, Status.ROLLED_BACK])
def test_a_write_that_has_a_marker_and_no_document_is_decided_by_hand(verdict: Status) -> None:
    """Its document has expired while the write was open; the verdict makes a new one, and the alarm ends."""
    world = World()
    world.job().begin()
    world.bucket.delete(f"checkpoints/{world.key}.json")
    with pytest.raises(UsageError, match="may still claim"):
        override(world.checkpoints, world.key, verdict, "counted the rows", world.clock)

    world.grace_passes()
    document = override(world.checkpoints, world.key, verdict, "counted the rows", world.clock)
    assert (document.status, document.reason) == (verdict, "by hand: counted the rows")
    assert world.document.attempt.settled_by == "by hand"
    assert f"audit/{world.key}-1-by_hand_{verdict.value}.jsonl" in world.bucket.contents()
    assert world.marked() == ()
    assert world.job().claim().already_committed == (verdict is Status.COMMITTED)


def test_a_document_that_is_made_meanwhile_wins() -> None:
    """A retry has claimed the write after all."""
    world = World()
    world.job().claimer.announce()
    world.grace_passes()
    put = world.bucket.put

    def overtaken(key: str, body: bytes) -> str:
        world.checkpoints.create(world.job().claimer._first(world.job().state(), None))
        return put(key, body)

    world.bucket.put = overtaken  # type: ignore[method-assign]
    with pytest.raises(UsageError, match="changed meanwhile"):
        override(world.checkpoints, world.key, Status.ROLLED_BACK, "why", world.clock)
    assert world.document.status is Status.IN_PROGRESS


def test_a_verdict_by_hand_is_dated() -> None:
    """The grace for late requests of the attempt begins with it."""
    world = unknown()
    world.sleep(60)

    document = override(world.checkpoints, world.key, Status.ROLLED_BACK, "looked", world.clock)

    assert document.attempt.settled_ms == world.now_ms


def test_an_attempt_with_a_sign_of_life_may_still_claim() -> None:
    """Its time is over, but not its lease."""
    world = World()
    job = world.job()
    job.claimer.announce()
    world.grace_passes()
    world.checkpoints.renew_lease(world.key, job.attempt.nonce)
    world.now_ms += LEASE_MS
    with pytest.raises(UsageError, match="may still claim"):
        override(world.checkpoints, world.key, Status.COMMITTED, "looked", world.clock)

    world.now_ms += 1

    document = override(world.checkpoints, world.key, Status.COMMITTED, "looked", world.clock)
    assert (document.epoch, document.attempt.commit_version) == (1, None)
