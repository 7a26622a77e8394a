"""A coordinator's release of a lock, when its reply is lost, counts only if the record says that it landed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.coordination import JobCoordinator
from safewriter.coordination.backends.memory import MemoryBackend
from safewriter.coordination.configuration import Configuration
from safewriter.coordination.record import End
from safewriter.coordination.transitions import end, grant
from safewriter.objects.store import StoreError

if TYPE_CHECKING:
    from safewriter.coordination.backend import Stored
    from safewriter.coordination.record import Record

NEXT = Configuration(lock="events", job="Next")


class Losing(MemoryBackend):
    """Answers no release: it lands and the next job has the lock at once (`lands`), or it gets lost."""

    def __init__(self, *, lands: bool) -> None:
        super().__init__()
        self._lands = lands

    def write(self, record: Record, after: Stored | None) -> Stored:
        if record.history and record.history[-1].end is End.COMPLETED:
            if self._lands:
                released = super().write(record, after)
                super().write(grant(record, NEXT, "next", "", 0), released)
            raise StoreError("no answer")
        return super().write(record, after)


def test_a_release_that_landed_before_the_next_grant_counts() -> None:
    """A release whose reply is lost counts, even if another job has the lock when its holder reads the record."""
    coordinator = JobCoordinator(Configuration(lock="events", job="Job"), Losing(lands=True))
    coordinator.lock()
    assert coordinator.unlock()


def test_a_release_that_got_lost_is_an_error() -> None:
    """A release that is not in the record raises the service's error; the lease ends the turn."""
    coordinator = JobCoordinator(Configuration(lock="events", job="Job", lease_s=1), Losing(lands=False))
    coordinator.lock()
    with pytest.raises(StoreError, match="no answer"):
        coordinator.unlock()


def test_a_release_after_a_takeover_is_no_completion() -> None:
    """A release whose reply is lost does not count if the record says that others ended the turn."""
    backend = Losing(lands=False)
    coordinator = JobCoordinator(Configuration(lock="events", job="Job"), backend)
    coordinator.lock()
    stored = backend.read("events")
    assert stored is not None
    backend.write(end(stored.record, End.FORCED, 0), stored)
    assert not coordinator.unlock()
