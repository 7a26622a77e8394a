"""A new holder of a lock fences and settles the open writes of dead holders, or leaves them open in doubt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from safewriter.coordination.record import OpenWrite
from safewriter.coordination.takeover import decided, settle
from safewriter.deadline import epoch_ms
from safewriter.errors import UnknownOutcomeError
from safewriter.objects.store import StoreError
from safewriter.record.document import Status
from safewriter.settle.recovery import Cause
from tests.unit.safewriter.world import World


def write_of(world: World, epoch: int = 1) -> OpenWrite:
    return OpenWrite("s3://checkpoints", world.key, epoch)


def settle_in(world: World, write: OpenWrite) -> None:
    settle(write, store=lambda _: world.bucket, table_store=lambda _: world.lake)


def test_a_dead_holder_s_write_can_land_no_more() -> None:
    """Its commit meets a fence, although its process is alive and does not know it."""
    world = World()
    job = world.job().begin()
    settle_in(world, write_of(world))
    assert world.document.status is Status.ROLLED_BACK
    assert world.document.attempt.settled_by == Cause.TURN.value
    assert not job.commit()
    assert world.log.live() == ["foreign-0.parquet"]


def test_a_dead_holder_s_commit_that_has_landed_stays() -> None:
    """It was made in the holder's own turn."""
    world = World()
    job = world.job().begin().land()
    settle_in(world, write_of(world))
    assert world.document.status is Status.COMMITTED
    assert job.files[0].path in world.log.live()


def test_a_later_attempt_is_not_settled_with_an_earlier_one() -> None:
    """The later attempt belongs to another turn."""
    world = World()
    world.job().begin()
    settle_in(world, write_of(world))
    world.job().begin()
    settle_in(world, write_of(world))
    assert (world.document.status, world.document.epoch) == (Status.IN_PROGRESS, 2)


def test_a_table_that_does_not_answer_leaves_the_write_open() -> None:
    """The new holder then gives the lock back."""
    world = World()
    world.job().begin()

    def fail(_: str) -> World:
        raise StoreError("no answer")

    with pytest.raises(UnknownOutcomeError):
        settle(write_of(world), store=lambda _: world.bucket, table_store=fail)  # type: ignore[arg-type]
    assert world.document.status is Status.IN_PROGRESS


def test_a_document_that_is_not_there_proves_nothing() -> None:
    """It may be gone, or this job may not read it; the write was claimed, so it may still land."""
    world = World()
    gone = OpenWrite("s3://checkpoints", "sw-gone", 1, epoch_ms())

    with pytest.raises(UnknownOutcomeError, match="soal locks forget LOCK --write sw-gone"):
        settle_in(world, gone)


def test_a_document_that_is_older_than_the_write_proves_nothing() -> None:
    """The bucket was restored, or the document was deleted and the write claimed again."""
    world = World()
    world.job().begin()
    with pytest.raises(UnknownOutcomeError, match="is older than the write"):
        settle_in(world, replace(write_of(world, 3), noted_ms=epoch_ms()))
    assert world.document.status is Status.IN_PROGRESS


def test_a_document_that_expired_long_after_its_verdict_blocks_nobody() -> None:
    """Otherwise a killed monthly job would lock all others out."""
    settle_in(World(), OpenWrite("s3://checkpoints", "sw-gone", 1, epoch_ms() - 8 * 24 * 3_600_000))


def test_a_write_is_undecided_until_its_document_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing document decides nothing; a later attempt's document decides the earlier attempt."""
    world = World()
    monkeypatch.setattr("safewriter.objects.s3.open_store", lambda location: world.bucket)
    gone = OpenWrite("s3://checkpoints", "gone", 1)
    world.job().begin()
    first, second = write_of(world), write_of(world, 2)
    assert list(decided([first, gone])) == []
    settle_in(world, first)
    assert list(decided([first])) == [first]
    world.job().begin()
    assert list(decided([first, second])) == [first]


@pytest.mark.parametrize("wanted", [True, False])
def test_a_takeover_keeps_the_audit_log_as_the_setting_says(monkeypatch: pytest.MonkeyPatch, *, wanted: bool) -> None:
    """It logs each rollback, or none."""
    monkeypatch.setenv("SW_AUDIT_LOG", str(wanted).lower())
    world = World()
    world.job().begin()
    settle_in(world, write_of(world))
    assert any(found.key.startswith("audit/") for found in world.bucket.list("")) is wanted
