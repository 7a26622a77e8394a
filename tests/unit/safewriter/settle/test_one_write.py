"""Writes that have a marker and no document: their attempt died before its claim, or what was open was deleted."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import pytest

from safewriter.identity import Attempt
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import CommitPoint, Status
from safewriter.record.marker import Marker
from safewriter.settle.one_write import Action, Inspection, settle_one
from safewriter.settle.recovery import Cause, Recovery
from safewriter.tables.delta.table import DeltaTable
from tests.unit.safewriter.delta_log import key_of
from tests.unit.safewriter.failing import Network
from tests.unit.safewriter.invariants import check
from tests.unit.safewriter.settle.unclaimed import DAYS, close, landed, marker_of, vanish
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from safewriter.tables.table import Trace


def test_a_write_that_landed_is_committed_although_its_document_has_expired() -> None:
    """The new document says what the log says; a retry skips it."""
    world, job = landed()

    assert close(world).action is Action.SETTLED
    document = world.document
    assert (document.status, document.owner, document.epoch) == (Status.COMMITTED, job.attempt.nonce, 1)
    assert (document.attempt.commit_version, document.attempt.rows) == (2, 20)
    assert document.attempt.settled_by == Cause.SWEEPER.value
    assert world.marked() == ()
    assert world.job().claim().already_committed
    check(world)


def test_the_epoch_is_that_of_the_commit() -> None:
    """A second attempt has landed, and the document of both is gone."""
    world = World()
    world.job().begin()
    world.owner_dies()
    world.settle()
    world.grace_passes()
    world.recovery().clean(world.key)
    job = world.job().begin().land()
    world.grace_passes()
    vanish(world)

    assert close(world).action is Action.SETTLED
    assert (world.document.status, world.document.epoch) == (Status.COMMITTED, 2)
    assert world.document.attempt.prefix == job.document.attempt.prefix


def test_what_was_to_count_only_with_success_is_left_to_a_person() -> None:
    """Whether success() was called is unknown, and so is what an undo would need; the alarm stays."""
    world, _ = landed(CommitPoint.SUCCESS)
    before = world.bucket.contents()

    found = close(world)
    assert (found.action, found.document) == (Action.FAILED, None)
    assert "set the verdict by hand" in str(found.problem)
    assert world.bucket.contents() == before


def test_a_commit_that_was_taken_back_is_no_commit() -> None:
    """It was undone, and then the document was deleted."""
    world = World(CommitPoint.SUCCESS)
    world.job().begin().land()
    world.owner_dies()
    assert world.settle().status is Status.ROLLED_BACK
    world.grace_passes()
    vanish(world)

    assert close(world).action is Action.UNCLAIMED
    assert world.checkpoints.read(world.key) is None


@pytest.mark.parametrize("restored", [False, True])
def test_an_undo_tells_the_epoch_of_a_commit_that_is_older_than_what_is_read(*, restored: bool) -> None:
    """The commit came before the oldest marker, its undo later; a document of epoch 0 could not be written."""
    world, job = landed()
    late = world.job()
    late.claimer.announce()
    signature = {"safewriter": {"key": world.key, "epoch": 1, "reverts": job.slot}}
    info = {"operation": "SAFEWRITER REVERT", "userMetadata": json.dumps(signature)}
    gone = ({"remove": {"path": file.path, "dataChange": True}} for file in job.files)
    world.log.commit([{"commitInfo": info}, *gone])
    if restored:
        world.log.commit([{"commitInfo": {"operation": "RESTORE"}}, *(file.add() for file in job.files)])
    world.checkpoints.unmark(world.key, job.attempt.nonce)
    world.grace_passes()
    found = close(world)
    if restored:
        assert (found.action, world.document.status, world.document.epoch) == (Action.SETTLED, Status.COMMITTED, 1)
    else:
        assert (found.action, world.checkpoints.read(world.key)) == (Action.UNCLAIMED, None)


def test_a_log_that_does_not_reach_back_decides_nothing() -> None:
    """Log retention has removed the versions that may have included the commit."""
    world, _ = landed()
    for version in range(3):
        world.lake.delete(key_of(version))

    found = close(world)
    assert found.action is Action.FAILED
    assert "log retention" in str(found.problem)
    assert len(world.marked()) == 1


def test_a_log_without_a_version_is_not_an_empty_one() -> None:
    """Its checkpoints show that it had versions; a table that was never created has nothing."""
    world = World(existing=False)
    world.job().claimer.announce()
    world.grace_passes()
    world.lake.put("_delta_log/_last_checkpoint", b"{}")
    assert close(world).action is Action.FAILED

    world.lake.delete("_delta_log/_last_checkpoint")
    assert close(world).action is Action.UNCLAIMED


def test_no_more_than_the_last_versions_are_read_and_what_the_table_has_gained_since() -> None:
    """The cost does not grow with the table's age."""
    world = World()
    for _ in range(110):
        world.append_foreign()
    world.sleep(DAYS)
    world.job().claimer.announce()
    world.append_foreign()
    world.grace_passes()
    network = Network()

    assert close(world, network).action is Action.UNCLAIMED
    read = [sent.key for sent in network.sent if sent.verb == "get" and sent.key.startswith("_delta_log/")]
    assert sorted(read) == [*map(key_of, range(world.log.head - 99, world.log.head + 1)), "_delta_log/_last_checkpoint"]


def test_an_attempt_whose_lease_is_renewed_is_alive_although_its_document_is_gone() -> None:
    """One without a deadline may write for more than a day."""
    world = World()
    job = world.job(deadline_ms=None).begin()
    vanish(world)
    world.sleep(2 * DAYS)
    world.checkpoints.renew_lease(world.key, job.attempt.nonce)
    found = close(world)
    assert (found.action, found.marker) == (Action.ALIVE, marker_of(world))

    world.owner_dies()
    assert close(world).action is Action.UNCLAIMED


def test_a_marker_that_has_gone_since_it_was_listed_tells_nothing() -> None:
    """Its attempt has ended meanwhile, so no document is made for it."""
    world = World()
    job = world.job()
    job.claimer.announce()
    world.grace_passes()

    def overtake(_: int) -> None:
        if network.sent[-1].verb == "get":
            world.checkpoints.unmark(world.key, job.attempt.nonce)

    network = Network(before=overtake)
    assert close(world, network) == Inspection(Action.NONE)


@pytest.mark.parametrize("named", ["orc", "iceberg"])
def test_a_table_that_cannot_be_asked_decides_nothing(named: str) -> None:
    """It has an unknown format, or lies in a catalog that the marker does not name."""
    world = World()
    write, attempt = dataclasses.replace(world.write, format=named, table="nowhere.db.t"), Attempt.draw()
    world.checkpoints.mark(Marker.of(write, attempt, CommitPoint.WRITE, started_ms=world.now_ms, deadline_ms=None))
    world.sleep(3 * 86_400)

    found = settle_one(world.checkpoints, world.recovery(), write.key, Cause.SWEEPER, world.clock)
    assert found.action is Action.FAILED
    assert found.marker is not None
    assert world.marked() == (attempt.nonce,)


def test_a_write_is_looked_for_since_its_oldest_marker() -> None:
    """The first attempt landed, its retry died before its claim 110 versions later, and then the document was lost."""
    world = World()
    job = world.job().begin().land()
    world.append_foreign()
    world.sleep(3600)
    for _ in range(110):
        world.append_foreign()
    world.sleep(1)
    world.job().claimer.announce()
    vanish(world)
    world.grace_passes()

    assert close(world).action is Action.SETTLED
    assert (world.document.status, world.document.attempt.commit_version) == (Status.COMMITTED, 2)
    assert {file.path for file in job.files} <= set(world.log.live())
    assert world.job().claim().already_committed
    check(world)


@pytest.mark.parametrize("ahead_s", [-900, 900])
def test_a_clock_that_is_wrong_hides_no_commit(ahead_s: int) -> None:
    """S3 accepts requests whose clock is up to fifteen minutes off."""
    world = World()
    world.append_foreign()
    world.sleep(3600)
    job = world.job()
    job.claimer.announce()
    (mark,) = world.checkpoints.markers_of(world.key)
    found = world.checkpoints.announced(mark)
    assert found is not None
    off = found.marker.started_ms + ahead_s * 1000
    job.begin()
    world.checkpoints.mark(dataclasses.replace(found.marker, started_ms=off))
    job.land()
    world.bucket.delete(f"checkpoints/{world.key}.json")
    world.grace_passes()

    assert close(world).action is Action.SETTLED
    assert (world.document.status, world.document.owner) == (Status.COMMITTED, job.attempt.nonce)


def test_a_write_that_is_claimed_while_it_is_looked_at_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its document was there first."""
    world, _ = landed()
    monkeypatch.setattr(Checkpoints, "create", lambda *_: None)

    found = close(world)

    assert (found.action, found.marker) == (Action.ALIVE, marker_of(world))


@pytest.mark.parametrize("verb", ["get", "create"])
def test_a_write_that_is_undone_while_it_is_looked_at_is_not_committed(verb: str) -> None:
    """A retry has begun and landed since its document was missed; now it fails, and its document is deleted."""
    world = World()
    world.job().claimer.announce()
    world.grace_passes()
    retry = world.job().begin().land()
    world.checkpoints.unmark(world.key, retry.attempt.nonce)  # as if it had been put behind the list

    def undo(_: int) -> None:
        if (network.sent[-1].verb, network.sent[-1].key) == (verb, f"checkpoints/{world.key}.json"):
            world.settle(Cause.EXCEPTION)
            vanish(world)

    network = Network(before=undo)

    assert close(world, network).action is Action.ALIVE
    found = world.checkpoints.read(world.key)
    assert found is None or found.document.owner == retry.attempt.nonce


def test_a_look_tells_what_the_write_was_and_what_it_is() -> None:
    """The two documents show an operator what the inspection has changed."""
    world = World()
    world.job().begin()
    world.grace_passes()

    found = settle_one(world.checkpoints, world.recovery(), world.key, Cause.OPERATOR, world.clock)

    assert found.before is not None
    assert found.document is not None
    assert (found.before.status, found.document.status) == (Status.IN_PROGRESS, Status.ROLLED_BACK)


@pytest.mark.parametrize(
    ("left", "ends", "action"),
    [
        ("open", "before it", Action.FAILED),
        ("open", "behind the verdict", Action.UNCLEAN),
        ("finished", "before it", Action.UNCLEAN),
    ],
)
def test_a_look_without_time_for_all_markers_hides_no_failure(left: str, ends: str, action: Action) -> None:
    """A write that could not be settled stays failed; one that was has markers that the next settler looks at."""
    world = World()
    world.job().begin()
    world.grace_passes()
    if left == "finished":
        world.settle()
        world.recovery().clean(world.key)
        world.job().claimer.announce()

    def may_go_on() -> bool:
        return ends == "behind the verdict" and world.document.status is Status.IN_PROGRESS

    recovery = world.recovery(may_go_on=may_go_on)
    assert settle_one(world.checkpoints, recovery, world.key, Cause.SWEEPER, world.clock).action is action


def test_a_table_that_shows_success_needs_nobody_to_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """An Iceberg table does: it is published by success()."""
    world, _ = landed(CommitPoint.SUCCESS)
    trace_of = DeltaTable.trace

    def trace(table: DeltaTable, write_key: str, since_ms: int) -> Trace | None:
        found = trace_of(table, write_key, since_ms)
        return None if found is None else dataclasses.replace(found, succeeded=True)

    monkeypatch.setattr(DeltaTable, "trace", trace)

    assert close(world).action is Action.SETTLED
    assert world.document.status is Status.COMMITTED


def test_a_problem_has_a_bound_whoever_tells_it() -> None:
    """It quotes documents and tables, and a sweep has those of thousands of writes."""
    assert len(str(Inspection(Action.FAILED, "x" * 10**6).problem)) < 7000


@pytest.mark.parametrize(
    ("left", "action", "problem"),
    [
        ("nothing", Action.FAILED, "disappeared while it was settled"),
        ("a claim", Action.ALIVE, "a retry has claimed the write since"),
    ],
)
def test_a_write_that_slips_away_is_not_called_settled(
    monkeypatch: pytest.MonkeyPatch, left: str, action: Action, problem: str
) -> None:
    """Its document is gone, or a retry has settled and claimed it."""
    world = World()
    world.job().begin()
    world.grace_passes()
    stored = world.checkpoints.read(world.key)
    monkeypatch.setattr(Recovery, "settle", lambda *_: None if left == "nothing" else stored)

    found = settle_one(world.checkpoints, world.recovery(), world.key, Cause.SWEEPER, world.clock)

    assert found.action is action
    assert problem in (found.problem or "")
