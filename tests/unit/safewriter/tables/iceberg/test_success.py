"""success() on an Iceberg table, where the document says first which snapshot is picked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from safewriter.block import Block
from safewriter.checkpoint import Checkpoints
from safewriter.ending import Ending
from safewriter.identity import Attempt
from safewriter.recovery import Recovery
from safewriter.state import CommitPoint, Status
from tests.unit.safewriter.failing import Fault, Network

if TYPE_CHECKING:
    from tests.unit.safewriter.tables.iceberg.bench import Bench


class FakeSession:
    """The Spark side of a block that has staged its rows."""

    noted, passed, answered = False, True, True

    def shut(self, reason: str) -> None:
        pass

    def seen(self) -> Any:
        return self

    def may_have_left_files(self, seen: Any) -> bool:
        return True


def test_a_pick_whose_answer_was_lost_is_published_by_asking_again(bench: Bench) -> None:
    """The document says publishing, by this attempt: success() goes on from there."""
    held = bench.claim()
    bench.stage(held)
    network = Network(Fault.LOSE_REPLY, 1)
    checkpoints = Checkpoints(network.store(bench.bucket))
    session: Any = FakeSession()
    block = Block(
        table=str(bench.name),
        write=bench.write,
        attempt=Attempt(held.document.owner),
        commit_point=CommitPoint.WRITE,
        deadline=None,
        lead_ms=0,
        checkpoints=checkpoints,
        recovery=Recovery(checkpoints, bench.table_store, clock=bench.clock),
        session=session,
        batch=None,
        journal=None,
    )
    naps: list[float] = []
    end = Ending(block, held, naps.append)
    end.succeed()
    assert network.fired
    assert naps == [0.5]
    assert bench.document.status is Status.COMMITTED
    assert bench.rows() == 20
    bench.check()
