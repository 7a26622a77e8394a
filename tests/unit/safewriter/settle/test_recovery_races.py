"""Another process changes document or log between two requests of a settler."""

from __future__ import annotations

import pytest

from safewriter.errors import UnknownOutcomeError
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import Status
from safewriter.settle.recovery import Cause
from tests.unit.safewriter.failing import Network
from tests.unit.safewriter.invariants import check
from tests.unit.safewriter.settle.traces import operations
from tests.unit.safewriter.world import World


class Meddling(Checkpoints):
    """Another process changes the document just before each of the first changes."""

    def __init__(self, world: World, times: int) -> None:
        super().__init__(world.bucket)
        self._world = world
        self._times = times

    def replace(self, held, document):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201
        if self._times:
            self._times -= 1
            self._world.bucket.put(f"checkpoints/{held.document.write_key}.json", held.document.to_bytes())
        return super().replace(held, document)


@pytest.mark.parametrize("landed", [True, False])
@pytest.mark.parametrize("cause", [Cause.KILLED, Cause.EXCEPTION])
def test_a_lost_compare_and_swap_begins_again_and_ends_true(cause: Cause, landed: object) -> None:
    """After each lost race the settler reads again, and never guesses."""
    world = World()
    job = world.job().begin()
    if landed:
        job.land()
    recovery = world.recovery()
    recovery._checkpoints = Meddling(world, 3)

    stored = recovery.settle(world.key, cause)

    assert stored is not None
    expected = Status.COMMITTED if landed and cause is Cause.KILLED else Status.ROLLED_BACK
    assert world.document.status is stored.document.status is expected
    assert operations(world).count("SAFEWRITER FENCE") <= 1
    assert operations(world).count("SAFEWRITER REVERT") <= 1


def test_a_settler_that_always_loses_gives_up() -> None:
    """After a bounded number of rounds the outcome is unknown, and the settler does not run for ever."""
    world = World()
    world.job().begin()
    recovery = world.recovery()
    recovery._checkpoints = Meddling(world, 10**9)

    with pytest.raises(UnknownOutcomeError):
        recovery.settle(world.key, Cause.KILLED)


def test_a_landing_between_look_and_fence_is_seen() -> None:
    """The commit takes the slot of the fence, so the fence looks again and finds it."""
    world = World()
    job = world.job().begin()
    job.prepare()
    flying = [job.send]

    def before(number: int) -> None:
        if network.sent[-1].verb == "create" and flying:
            flying.pop()()

    network = Network(before=before)

    document = world.settle(network=network)

    assert (document.status, operations(world)[-1]) == (Status.COMMITTED, "WRITE")
    check(world)
