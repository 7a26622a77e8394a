"""Verdicts by hand over unreadable objects: the other object of the write identifies it."""

from __future__ import annotations

import json

import pytest

from safewriter.errors import UsageError
from safewriter.objects import StoreError
from safewriter.record.document import Status
from safewriter.settle.one_write import Action
from safewriter.settle.override import override
from tests.unit.safewriter.failing import Fault, Network
from tests.unit.safewriter.settle.sweeps import look, sweep
from tests.unit.safewriter.world import World

DAY_S = 86_400
BODY = b"no JSON"


def document(world: World) -> str:
    return f"checkpoints/{world.key}.json"


def decide(world: World, verdict: Status = Status.COMMITTED) -> None:
    override(world.checkpoints, world.key, verdict, "counted the rows", world.clock)


def damaged() -> World:
    """A dead write whose document holds no JSON."""
    world = World()
    world.job().begin()
    world.grace_passes()
    world.bucket.put(document(world), BODY)
    return world


@pytest.mark.parametrize("verdict", [Status.COMMITTED, Status.ROLLED_BACK])
def test_a_document_that_is_damaged_is_replaced_by_one_of_its_marker(verdict: Status) -> None:
    """It raises the alarm until a person decides; the audit log has its line, and a retry knows what to do."""
    world = damaged()
    found = look(world)
    assert (found.action, found.status) == (Action.UNREADABLE, None)
    assert f"{world.checkpoints.uri(world.key)}: not a checkpoint document" in str(found.problem)

    decide(world, verdict)

    assert (world.document.status, world.document.reason) == (verdict, "by hand: counted the rows")
    assert (world.document.run_key, world.document.attempt.settled_by) == ("run", "by hand")
    assert f"audit/{world.key}-1-by_hand_{verdict.value}.jsonl" in world.bucket.contents()
    assert sweep(world).looks == ()
    assert world.job().claim().already_committed == (verdict is Status.COMMITTED)


def test_a_damaged_document_stays_while_its_owner_may_live() -> None:
    """Its owner is unknown, so each attempt with a marker counts."""
    world = World()
    job = world.job().begin()
    world.bucket.put(document(world), BODY)
    with pytest.raises(UsageError, match=f"attempt {job.attempt.nonce} .* may still claim or write it"):
        decide(world)
    world.grace_passes()
    world.checkpoints.renew_lease(world.key, job.attempt.nonce)
    with pytest.raises(UsageError, match="may still claim"):
        decide(world)
    assert world.bucket.contents()[document(world)] == BODY
    assert not [key for key in world.bucket.contents() if key.startswith("audit/")]


def test_a_damaged_document_stays_without_the_line_of_the_audit_log() -> None:
    """Each verdict by hand has one."""
    world = damaged()
    checkpoints = type(world.checkpoints)(Network(Fault.REFUSE, 1).store(world.bucket))
    with pytest.raises(StoreError):
        override(checkpoints, world.key, Status.COMMITTED, "why", world.clock)
    assert world.bucket.contents()[document(world)] == BODY


def test_a_document_that_is_brought_back_meanwhile_wins() -> None:
    """Only the very object that could not be read is replaced."""
    world = World()
    world.job().begin()
    world.grace_passes()
    whole = world.bucket.contents()[document(world)]
    world.bucket.put(document(world), BODY)
    put = world.bucket.put

    def overtaken(key: str, body: bytes) -> str:
        put(document(world), whole)
        return put(key, body)

    world.bucket.put = overtaken  # type: ignore[method-assign]
    with pytest.raises(UsageError, match="changed meanwhile"):
        decide(world)
    assert world.bucket.contents()[document(world)] == whole
    assert len(world.marked()) == 1


def test_a_document_of_another_version_is_left_to_it() -> None:
    """It may be committed for those who can read it."""
    world = World()
    world.job().begin()
    world.grace_passes()
    body = json.dumps({**json.loads(world.bucket.contents()[document(world)]), "schema_version": 99}).encode()
    world.bucket.put(document(world), body)
    with pytest.raises(UsageError, match=r"schema version 99.* of the version that has written it"):
        decide(world)
    assert world.bucket.contents()[document(world)] == body


@pytest.mark.parametrize("name", ["checkpoints/{}.json", "open/{}/0000000000000001"])
def test_what_nothing_tells_of_is_named_with_what_to_do(name: str) -> None:
    """Neither document nor marker can be read, so the table is unknown."""
    world = World()
    key = name.format(world.key)
    world.bucket.put(key, BODY)
    world.sleep(2 * DAY_S)
    with pytest.raises(UsageError) as raised:
        decide(world)
    assert str(raised.value).startswith(world.bucket.uri(key))
    assert "Restore an earlier version of the object" in str(raised.value)
    assert set(world.bucket.contents()) == {key}


def test_a_damaged_marker_changes_nothing_where_the_document_can_be_read() -> None:
    """The document is enough."""
    world = World()
    job = world.job().begin()
    marker = f"open/{world.key}/{job.attempt.nonce}"
    world.bucket.put(marker, BODY)
    with pytest.raises(UsageError, match="its owner lives"):
        decide(world)
    world.grace_passes()
    decide(world)
    assert world.document.status is Status.COMMITTED
    assert world.bucket.contents()[marker] == BODY


def test_beside_a_marker_that_can_be_read_a_damaged_one_counts_as_alive_for_a_day() -> None:
    """It is unknown how long its attempt may write."""
    world = World()
    world.job().claimer.announce()
    world.bucket.put(f"open/{world.key}/damaged", BODY)
    world.sleep(DAY_S)
    with pytest.raises(UsageError, match="attempt damaged of"):
        decide(world)
    world.sleep(1)
    assert look(world).action is Action.UNREADABLE
    decide(world)
    assert world.document.status is Status.COMMITTED
    assert world.marked() == ()


def test_beside_a_settled_document_a_damaged_marker_goes_after_a_day() -> None:
    """No alarm comes: a person could decide nothing more."""
    world = World()
    assert world.job().run()
    world.grace_passes()
    sweep(world)
    world.bucket.put(f"open/{world.key}/damaged", BODY)
    world.sleep(DAY_S)
    found = look(world)
    assert (found.action, found.status) == (Action.UNCLAIMED, Status.COMMITTED)
    world.sleep(1)
    assert look(world).action is Action.NONE
    assert world.marked() == ()
