"""A turn that another process has ended, and how its holder learns of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from safewriter.coordination.backends.memory import MemoryBackend
from safewriter.coordination.configuration import Configuration
from safewriter.coordination.coordinator import JobCoordinator
from safewriter.coordination.record import End, OpenWrite
from safewriter.coordination.transitions import end
from safewriter.errors import TurnLostError

WRITE = OpenWrite("s3://soal-checkpoints", "write-1", 1)


@pytest.mark.parametrize(
    ("how", "why"), [(End.FORCED, "an operator ended it"), (End.EXPIRED, "another job has it")], ids=lambda one: one
)
def test_the_holder_learns_why_and_opens_no_more_writes(how: End, why: str) -> None:
    """Its next write is refused, and its release returns False."""
    backend = MemoryBackend()
    coordinator = JobCoordinator(Configuration(lock="L", job="Mutation"), backend)
    turn = coordinator.lock()
    stored = backend.read("L")
    assert stored is not None
    ended = backend.write(end(stored.record, how, 0), stored)

    with pytest.raises(TurnLostError, match=why):
        turn.open_write(WRITE)
    assert not coordinator.unlock()
    assert backend.read("L") == replace(ended)
