"""The job's turn: taken before the job starts, renewed while it runs, and given back once its writes are settled."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from handler.input_errors import InputError
from handler.observability import logger
from handler.process.bounded_call import OverdueError, within
from safewriter.coordination import End, JobCoordinator, Turn
from safewriter.coordination.configuration import PREFIX
from safewriter.errors import SafeWriterError, SettingError, TurnBlockedError, TurnSkippedError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from safewriter.coordination import Configuration
    from safewriter.schedule import Schedule

__all__ = ["JobTurn", "hold_turn"]

_LEFT_SHARE: Final = 4
"""The handler ends its job when less than 1/4 of the lease is left; a renewal begins with nearly half of it left."""


class JobTurn:
    """The turn of one job; without coordination there is no turn, and no lock service is called."""

    def __init__(self, coordinator: JobCoordinator | None) -> None:
        self._coordinator = coordinator
        self._end = End.FAILED
        self._is_over = False
        self.has_completed = False
        """The lock service confirmed that the run completed its turn, now or earlier."""
        self.loss: str | None = None
        """Why the job was ended for a lost turn; None: it was not."""

    @property
    def repeats(self) -> bool:
        """Whether the run completed its turn earlier and holds this one outside the order."""
        turn = None if self._coordinator is None else self._coordinator.held
        return isinstance(turn, Turn) and turn.repeats

    def lend(self) -> str | None:
        """Return the text with which the job's process can use the turn; None without a turn."""
        if self._coordinator is None or self._coordinator.held is None:
            return None
        return self._coordinator.lend()

    def may_go_on(self) -> bool:
        """Return False once the turn is lost, or could be lost before the job has ended."""
        turn = None if self._coordinator is None else self._coordinator.held
        if self._coordinator is None or turn is None or self.loss is not None:
            return self.loss is None
        if turn.left_s < self._coordinator.configuration.lease_s / _LEFT_SHARE:
            self.loss = str(turn.lost_error())
        return self.loss is None

    def completed(self, *, again: bool = False) -> None:
        """Note that the job has succeeded. `again`: by its record, the run completed its turn earlier, and this turn
        does not count.
        """
        self._end = End.REPEATED if again else End.COMPLETED

    def give_back(self, warn: Callable[[str], None], left_ms: int) -> None:
        """End the turn unless it has ended. If the lock service does not answer, the lease ends the turn, which counts
        as not completed.
        """
        coordinator = self._coordinator
        if coordinator is None or self._is_over:
            return
        self._is_over = True
        lock = coordinator.configuration.lock
        try:
            is_given_back = within(left_ms, lambda: coordinator.unlock(self._end))
            self.has_completed = is_given_back and self._end is End.COMPLETED
            if not is_given_back and self._end is End.COMPLETED:
                warn(f"the turn on {lock} was lost, or has a write without a verdict; it does not count as completed")
        except (SafeWriterError, OverdueError) as error:
            logger.warning("the turn on %s was not given back: %s", lock, error)
            warn(f"the turn on {lock} was not given back ({error}); its lease ends it, and it does not count")


@contextmanager
def hold_turn(
    configuration: Configuration | None,
    schedule: Schedule,
    *,
    run: str,
    warn: Callable[[str], None],
    unfinished: Callable[[], str | None],
) -> Iterator[JobTurn]:
    """Hold the job's turn for a block; wait for it until half of the invocation's time is over. `run` is the run key: a
    second delivery of a run that has completed its turn does not count as another turn. `unfinished` returns why the
    run may not be skipped, or None.

    Raises `TurnBlockedError` if the job gets no turn, `TurnSkippedError` if the job should then skip it, and errors of
    `unfinished`.
    """
    if configuration is None:
        yield JobTurn(None)
        return
    coordinator = _coordinator_of(configuration, run, lambda: schedule.left_ms(schedule.begin_by_ms) > 0)
    turn = JobTurn(coordinator)
    try:
        _lock(coordinator, unfinished)
        yield turn
    finally:
        turn.give_back(warn, schedule.left_ms(schedule.settle_by_ms))
        coordinator.backend.close()


def _coordinator_of(configuration: Configuration, run: str, may_wait: Callable[[], bool]) -> JobCoordinator:
    try:
        return JobCoordinator(configuration, run=run, run_has_one_turn=True, may_wait=may_wait)
    except SettingError as error:
        raise _of_the_function(error) from None


def _lock(coordinator: JobCoordinator, unfinished: Callable[[], str | None]) -> None:
    try:
        coordinator.lock()
    except TurnSkippedError as error:
        # A skipped turn counts as a success, and nobody tries it again: that must be true of the run, not only of this
        # attempt.
        if reason := unfinished():
            raise TurnBlockedError(f"{error}; the run is not skipped: {reason}") from None
        raise
    except SettingError as error:
        raise _of_the_function(error) from None
    except UnsupportedError as error:
        raise InputError("SW_LOCKS", str(error)) from None


def _of_the_function(error: SettingError) -> InputError:
    """Name the function's setting in an error of the lock service or the order, which no event can set."""
    if error.name.startswith(PREFIX) and error.name != f"{PREFIX}backend":
        return InputError("SOAL_TURNS", f"{error.name} {error.problem}")
    return InputError("SW_LOCKS" if error.name == f"{PREFIX}backend" else error.name, error.problem)
