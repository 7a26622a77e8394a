"""The job's turn: taken before the job starts, renewed while it runs, and given back once its writes are settled."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from handler.observability import logger
from handler.process.bounded_call import OverdueError, within
from safewriter.coordination import End, JobCoordinator
from safewriter.objects import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from safewriter.coordination import Configuration
    from safewriter.schedule import Schedule

__all__ = ["JobTurn", "held"]

_LEFT_SHARE: Final = 3
"""The handler ends its job when less than this part of the lease is left, 1/3: renewals keep more."""


class JobTurn:
    """The turn of one job; without coordination there is none, and nothing is asked of anybody."""

    def __init__(self, coordinator: JobCoordinator | None) -> None:
        self._coordinator = coordinator
        self._end = End.FAILED

    @property
    def variable(self) -> str | None:
        """What the job's process is told of its turn."""
        if self._coordinator is None or self._coordinator.held is None:
            return None
        return self._coordinator.lend()

    @property
    def is_ending(self) -> bool:
        """Whether the turn is lost, or may be lost before the job has been ended."""
        if self._coordinator is None or self._coordinator.held is None:
            return False
        return self._coordinator.held.left_s < self._coordinator.configuration.lease_s / _LEFT_SHARE

    @property
    def loss(self) -> str | None:
        """Why the job was ended for its turn; None: it was not."""
        if self._coordinator is None or self._coordinator.held is None or not self.is_ending:
            return None
        return str(self._coordinator.held.lost_error())

    def completed(self) -> None:
        """Note that the job has done what its turn was for."""
        self._end = End.COMPLETED

    def give_back(self, warn: Callable[[str], None], left_ms: int) -> None:
        """End the turn; if the lock service does not answer, the lease ends it, and it counts as not completed."""
        coordinator = self._coordinator
        if coordinator is None:
            return
        lock = coordinator.configuration.lock
        try:
            if not within(left_ms, lambda: coordinator.unlock(self._end)) and self._end is End.COMPLETED:
                warn(f"the turn on {lock} was lost, or has a write without a verdict; it does not count as completed")
        except (StoreError, OverdueError) as error:
            logger.warning("the turn on %s was not given back: %s", lock, error)
            warn(f"the turn on {lock} was not given back ({error}); its lease ends it, and it does not count")


@contextmanager
def held(
    configuration: Configuration | None, schedule: Schedule, *, run_id: str, warn: Callable[[str], None]
) -> Iterator[JobTurn]:
    """Hold the job's turn for a block. The wait for it ends at half of the invocation's time.

    Raises `TurnBlockedError` if the job gets none, `TurnSkippedError` if it is to skip it then.
    """
    if configuration is None:
        yield JobTurn(None)
        return
    coordinator = JobCoordinator(configuration, run=run_id, may_wait=lambda: schedule.left_ms(schedule.begin_by_ms) > 0)
    coordinator.lock()
    turn = JobTurn(coordinator)
    try:
        yield turn
    finally:
        turn.give_back(warn, schedule.left_ms(schedule.settle_by_ms))
