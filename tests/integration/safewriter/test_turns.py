"""A token fences: late requests of a holder that lost its turn never land, in a Delta and in an Iceberg table."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from safewriter import SafeWriter, SafeWriterError, SupersededError, TurnLostError
from safewriter.coordination import Configuration, JobCoordinator, Turn
from safewriter.coordination.backends.memory import MemoryBackend
from safewriter.coordination.record import End
from safewriter.coordination.transitions import end
from tests.integration.safewriter.ice_rows import COLUMNS, append

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.support.ice import Catalog
    from tests.support.lake import Lake

pytestmark = pytest.mark.spark


class Lock:
    """A lock, a job that is frozen while it holds it, and the next job."""

    def __init__(self) -> None:
        self.backend = MemoryBackend()
        self.now_s = 0.0

    def coordinator(self, job: str) -> JobCoordinator:
        return JobCoordinator(Configuration(lock="table", job=job, poll_s=0.01), self.backend)

    def frozen(self) -> Turn:
        """Take a turn whose holder never renews it, and whose clock is stopped: it believes that it still holds it."""
        turn = self.coordinator("frozen").lock()
        assert isinstance(turn, Turn)
        turn.stop()
        turn._clock_s = lambda: self.now_s
        turn._sure_until_s = 10.0
        return turn

    def taken_over(self) -> JobCoordinator:
        """Let an operator end the turn, and the next job take it; that job settles the open write."""
        stored = self.backend.read("table")
        assert stored is not None
        self.backend.write(end(stored.record, End.FORCED, 0), stored)
        following = self.coordinator("following")
        following.lock()
        return following

    def unsettled(self) -> int:
        stored = self.backend.read("table")
        assert stored is not None
        return len(stored.record.unsettled)


@pytest.fixture
def lock() -> Lock:
    return Lock()


@pytest.fixture(params=["delta", "iceberg"])
def table(request: pytest.FixtureRequest, spark: SparkSession, s3: EmbeddedS3, lake: Lake) -> Table:
    """A table of each format that holds five rows."""
    if request.param == "delta":
        spark.range(5).write.format("delta").save(lake.table)
        return Table(lake.table, "delta", spark, lake.rows)
    catalog: Catalog = request.getfixturevalue("lite")
    ice = catalog.table(s3.observer())
    spark.sql(f"CREATE TABLE {ice.name} {COLUMNS}")
    append(spark, ice.name, 0, 5)
    return Table(ice.name, "iceberg", spark, ice.rows)


class Table:
    """A table, its block's write, and the number of rows seen by a reader other than Spark."""

    def __init__(self, name: str, kind: str, spark: SparkSession, rows: Callable[[], int]) -> None:
        self.name, self.format, self.spark, self.rows = name, kind, spark, rows

    def block(self, turn: Turn | None = None) -> SafeWriter:
        return SafeWriter(self.spark, self.name, format=self.format, step=uuid.uuid4().hex, turn=turn)

    def append(self, block: SafeWriter, rows: int) -> None:
        frame = self.spark.range(rows)
        if self.format == "delta":
            frame.write.format("delta").mode("append").save(block.table)
        else:
            frame.selectExpr("id", "'b' AS part").writeTo(block.table).append()


def test_a_frozen_holder_cannot_commit_in_the_next_job_s_turn(table: Table, lock: Lock) -> None:
    """It thaws with its block and its gate open; the next holder has settled the block, and the table refuses."""
    turn = lock.frozen()

    with pytest.raises(SafeWriterError), table.block(turn) as block:
        following = lock.taken_over()
        table.append(block, 7)
        block.success()

    assert table.rows() == 5
    assert block.checkpoint is not None
    assert (block.checkpoint.status, block.checkpoint.attempt.settled_by) == ("rolled_back", "the turn was taken over")
    held = following.held
    assert isinstance(held, Turn)
    with table.block(held) as own:
        table.append(own, 2)
        own.success()
    assert following.unlock()
    assert table.rows() == 7
    assert lock.unsettled() == 0


def test_a_commit_before_the_turn_was_lost_stays(table: Table, lock: Lock) -> None:
    """The next holder finds it in the table, records committed, and the script's later error undoes nothing."""
    turn = lock.frozen()

    with pytest.raises((ZeroDivisionError, SupersededError)), table.block(turn) as block:
        table.append(block, 7)
        if table.format == "iceberg":
            block.success()
        following = lock.taken_over()
        _ = 1 / 0

    assert table.rows() == 12
    assert block.checkpoint is not None
    assert block.checkpoint.status == "committed"
    assert following.unlock()


def test_a_write_that_cannot_be_noted_in_the_record_never_begins(table: Table, lock: Lock) -> None:
    """The turn was lost before the block was entered: the claim is rolled back, and no gate opens."""
    turn = lock.frozen()
    following = lock.taken_over()

    block = table.block(turn)
    with pytest.raises(TurnLostError), block:
        pytest.fail("the block was entered")

    assert block.checkpoint is not None
    assert block.checkpoint.status == "rolled_back"
    assert following.unlock()


def test_a_holder_stops_itself_before_its_lease_can_have_ended(table: Table, lock: Lock) -> None:
    """No job has taken the turn over yet, but the gate is shut, and the block gives the reason."""
    turn = lock.frozen()

    with pytest.raises(TurnLostError), table.block(turn) as block:
        lock.now_s = 100.0
        assert block._turn_watch is not None
        assert block._turn_watch.join(5)
        table.append(block, 7)
        block.success()

    assert table.rows() == 5
    assert block.checkpoint is not None
    assert block.checkpoint.status == "rolled_back"


def test_a_turn_s_blocks_are_settled_and_it_completes(table: Table, lock: Lock) -> None:
    """The normal case: two blocks in a turn, recorded in the lock while it is held, and nothing left behind."""
    coordinator = lock.coordinator("first")

    with coordinator.turn() as turn:
        for rows in (1, 2):
            with table.block() as block:
                table.append(block, rows)
                block.success()
        assert isinstance(turn, Turn)
        assert len(turn.writes) == 2

    stored = lock.backend.read("table")
    assert stored is not None
    assert [past.end for past in stored.record.history] == [End.COMPLETED]
    assert lock.unsettled() == 0
    assert table.rows() == 8
