"""A Delta block's success() reads its own commit back from the log, and counts no other as a success."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from safewriter.errors import NotCommittedError, UnknownOutcomeError
from safewriter.record.document import Status
from safewriter.settle.recovery import Cause
from safewriter.tables.delta.gate import GateState, GateStatus
from safewriter.tables.delta.history import DeltaHistory
from safewriter.tables.delta.readback import ReadBack
from safewriter.tables.table import Landed, Move
from tests.unit.safewriter.delta_log import File, append_actions
from tests.unit.safewriter.surroundings import TABLE
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from tests.unit.safewriter.job import Job


def gate(
    status: str = "none", *, passed: bool = False, version: int = -1, refusal: str = "", stray: str = ""
) -> GateState:
    return GateState(GateStatus(status), passed, version, refusal, stray)


def read_back(job: Job, seen: GateState) -> Move:
    world = job.world
    return ReadBack(TABLE, DeltaHistory(world.lake, world.clock)).move(job.document, seen)


def after_a_creation_that_was_taken_back() -> World:
    """The first attempt has created the table, and its rows were undone."""
    world = World(existing=False)
    world.job().begin().land()
    world.owner_dies()
    return world


def test_a_commit_that_landed_is_read_from_the_table() -> None:
    """The document gets the version, rows and bytes from the log, not from Spark."""
    job = World().job().begin().land()

    assert read_back(job, gate("landed", passed=True, version=2)) == Move(Status.COMMITTED, landed=Landed(2, 20, 200))


@pytest.mark.parametrize("epoch", [1, 2])
def test_a_commit_that_the_gate_has_read_back_is_not_read_again(epoch: int) -> None:
    """It counts if it is this attempt's, with the size that the gate has summed up."""
    job = World().job().begin()
    lines = [{"commitInfo": {"operation": "WRITE", "operationMetrics": {"numOutputRows": "7"}}}]
    body = "\n".join(map(json.dumps, [*lines, {"txn": {"appId": job.document.write_key, "version": epoch}}]))
    seen = replace(gate("landed", passed=True, version=9), body=body.encode(), added_bytes=70)
    if epoch == job.document.epoch:
        assert read_back(job, seen) == Move(Status.COMMITTED, landed=Landed(9, 7, 70))
    else:
        with pytest.raises(NotCommittedError, match=r"version 9 of .* is not the commit of this block"):
            read_back(job, seen)


def test_a_version_of_somebody_else_is_not_this_block_s() -> None:
    """A version without the write's transaction does not count, whatever the gate has reported."""
    job = World().job().begin().land()

    with pytest.raises(NotCommittedError, match=r"version 1 of .* is not the commit of this block"):
        read_back(job, gate("landed", passed=True, version=1))


def test_the_version_of_an_earlier_epoch_is_not_this_block_s() -> None:
    """An earlier attempt's commit has the same write key; the epoch tells them apart."""
    world = World()
    job = world.job().begin()
    earlier = world.log.commit(append_actions((File("a.parquet"),), txn=(world.key, job.document.epoch - 1)))

    with pytest.raises(NotCommittedError, match="is not the commit of this block"):
        read_back(job, gate("landed", passed=True, version=earlier))


@pytest.mark.parametrize("status", ["in flight", "unknown"])
def test_a_commit_without_an_answer_is_no_success(status: str) -> None:
    """It may still land, so neither committed nor rolled back is true."""
    job = World().job().begin()

    with pytest.raises(UnknownOutcomeError, match="its answer has not come"):
        read_back(job, gate(status, passed=True))


def test_a_block_without_a_commit_is_no_success() -> None:
    """A commit that was not seen proves nothing; a statement that changes nothing makes one."""
    world = World()
    job = world.job().begin()
    world.append_foreign()

    with pytest.raises(NotCommittedError, match=r"no statement of the block has made a commit .*no_change=True"):
        read_back(job, gate())


def test_a_write_past_the_guard_is_no_success() -> None:
    """The block wrote another table instead, and the error names it."""
    job = World().job().begin()

    with pytest.raises(NotCommittedError, match="its statements wrote s3://lake/other, past the guard"):
        read_back(job, gate(stray="s3://lake/other"))


def test_a_commit_that_lost_is_no_success() -> None:
    """It passed the gate, and another commit took its slot."""
    job = World().job().begin()

    with pytest.raises(NotCommittedError, match="another commit was first"):
        read_back(job, gate(passed=True))


def filled(job: Job, *files: File, mode: str = "Ignore") -> GateState:
    """Land a commit of the block with these files, as Delta records a statement of a mode."""
    txn = (job.document.write_key, job.document.epoch)
    version = job.world.log.append(*files, txn=txn, operationParameters={"mode": mode})
    return gate("landed", passed=True, version=version)


def test_an_empty_commit_to_a_table_that_an_earlier_attempt_left_is_no_success() -> None:
    """A retry in the mode `ignore` finds the table and writes nothing; its rows are missing."""
    world = after_a_creation_that_was_taken_back()
    world.settle(Cause.EXCEPTION)
    retry = world.job().begin()

    with pytest.raises(NotCommittedError, match="exists only because an earlier attempt of this write began to create"):
        read_back(retry, filled(retry))


def test_a_retry_that_fills_the_table_of_an_earlier_attempt_is_a_success() -> None:
    """It appends to the empty table, as the error message advises."""
    world = after_a_creation_that_was_taken_back()
    world.settle(Cause.EXCEPTION)
    retry = world.job().begin()

    assert read_back(retry, filled(retry, File("a.parquet"))).status is Status.COMMITTED


def test_a_retry_that_appends_no_row_to_the_table_of_an_earlier_attempt_is_a_success() -> None:
    """Its batch is empty, and an append does not skip an existing table."""
    world = after_a_creation_that_was_taken_back()
    world.settle(Cause.EXCEPTION)
    retry = world.job().begin()

    assert read_back(retry, filled(retry, mode="Append")).status is Status.COMMITTED


def test_a_table_that_somebody_else_has_filled_since_is_theirs() -> None:
    """An earlier attempt created it, but that is no longer the only reason that it exists."""
    world = after_a_creation_that_was_taken_back()
    world.settle(Cause.EXCEPTION)
    world.append_foreign()
    retry = world.job().begin()

    assert read_back(retry, filled(retry)).status is Status.COMMITTED


def test_an_earlier_attempt_on_a_table_that_was_there_explains_nothing() -> None:
    """Only its own fence came since, but it has not created the table."""
    world = World()
    world.job().begin()
    world.owner_dies()
    world.settle(Cause.KILLED)
    retry = world.job().begin()

    assert read_back(retry, filled(retry)).status is Status.COMMITTED
