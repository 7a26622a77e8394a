"""A job's turns at one lock. `lock`, `register` and `unlock` are the calls of the article's Job Coordinator."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from safewriter.coordination import current
from safewriter.coordination.acquiring import Acquirer
from safewriter.coordination.backends.opening import backend_uri, open_backend
from safewriter.coordination.borrowed import borrowed_turn, lent
from safewriter.coordination.configuration import PREFIX, Configuration
from safewriter.coordination.record import End
from safewriter.coordination.stream import Batches, run_stream
from safewriter.coordination.takeover import decided, settle
from safewriter.coordination.turn import Turn
from safewriter.entropy import unique_id
from safewriter.errors import SafeWriterError, SettingError, TurnBlockedError, UsageError
from safewriter.objects.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from safewriter.coordination.backend import Backend
    from safewriter.coordination.borrowed import BorrowedTurn
    from safewriter.coordination.record import OpenWrite, Record

__all__ = ["JobCoordinator"]

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_PAUSE_MAX_S: Final = 1.0
_SPARE: Final = 4
"""Stop asking for verdicts when 1/4 of the lease is left, so that the release still fits."""


class JobCoordinator:
    """Takes and gives back one job's turns at one lock.

    >>> coordinator = JobCoordinator.from_spark(spark)  # doctest: +SKIP
    >>> with coordinator.turn():  # doctest: +SKIP
    ...     with SafeWriter(spark, "s3a://lake/events") as sw:
    ...         frame.write.format("delta").mode("append").save(sw.table)
    ...         sw.success()

    A guarded write in a turn belongs to the turn: once another job may have the turn, the table refuses the write.
    """

    def __init__(
        self,
        configuration: Configuration,
        backend: Backend | None = None,
        *,
        run: str = "",
        run_has_one_turn: bool = False,
        may_wait: Callable[[], bool] = lambda: True,
        settle: Callable[[OpenWrite, Callable[[], bool]], None] = settle,
        decided: Callable[[Collection[OpenWrite]], Iterable[OpenWrite]] = decided,
    ) -> None:
        self.configuration = configuration
        if backend is None:
            backend = open_backend(configuration.backend, lease_s=configuration.lease_s)
        self.backend = backend
        self._run, self._run_has_one_turn = run, run_has_one_turn
        self._may_wait = may_wait
        self._settle, self._decided = settle, decided
        self._turn: Turn | BorrowedTurn | None = None
        self._previous: str | None = None
        self._batches = Batches(self)

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, str]) -> Self:
        """Read the keys `job.coordinator.…`. Raises `SettingError`, which names the key."""
        return cls(Configuration.from_mapping(mapping))

    @classmethod
    def from_spark(cls, spark: SparkSession) -> Self:
        """Read the same keys from a session's settings, with or without the prefix `spark.`.

        Of a dead holder's writes it settles those in the session's catalogs, too.
        """
        catalogs = {key: value for key, value in spark.conf.getAll.items() if key.startswith("spark.sql.catalog.")}
        return cls(Configuration.from_spark(spark), settle=partial(settle, spark_settings=catalogs))

    @property
    def held(self) -> Turn | BorrowedTurn | None:
        """The turn that this coordinator holds."""
        return self._turn

    def lock(self, *, may_wait: Callable[[], bool] | None = None, stream: str | None = None) -> Turn | BorrowedTurn:
        """Take the turn: wait for lock and order while `may_wait` allows it, then settle a dead holder's open writes.

        `stream`: the run id of the stream whose batch the turn is for. Raises `TurnBlockedError` if the job gets no
        turn in time, `TurnSkippedError` instead with `on.blocked=skip`.
        """
        if self._turn is not None:
            raise UsageError(f"{self.configuration.job} has its turn on {self.configuration.lock} already")
        borrowed = borrowed_turn()
        if borrowed is not None and borrowed.is_of(self.configuration.lock, backend_uri(self.configuration.backend)):
            if borrowed.job != self.configuration.job:
                raise SettingError(
                    f"{PREFIX}name", f"is {self.configuration.job!r}, and the event took the turn for {borrowed.job!r}"
                )
            self._turn, self._previous = borrowed, borrowed.previous
            current.begin(borrowed, stream)
            return borrowed
        nonce = unique_id()[:16]
        both = self._may_wait if may_wait is None else lambda: may_wait() and self._may_wait()
        acquirer = Acquirer(self.backend, self.configuration, nonce, self._run, self._run_has_one_turn, may_wait=both)
        stored, times = acquirer.acquire()
        self._previous = _last_job(stored.record)
        turn = Turn(self.backend, self.configuration, stored, times)
        try:
            turn.start()
            self._settle_earlier(turn, both)
        except BaseException:
            turn.give_up()
            raise
        self._turn = turn
        current.begin(turn, stream)
        return turn

    def register(self) -> str | None:
        """Return the job that had the turn before this one. The lock's record has named this job since `lock`."""
        if self._turn is None:
            raise UsageError("register() is called with the lock held; call lock() first")
        return self._previous

    def unlock(self, end: End = End.COMPLETED) -> bool:
        """Give the turn back; return False if it does not count as completed.

        That is so if the turn was lost before, or if the checkpoint bucket shows no verdict for one of its writes.
        """
        return self._turn is not None and self.give_back(self._turn, end)

    def give_back(self, turn: Turn | BorrowedTurn, end: End) -> bool:
        """Give a turn back as `unlock` does. If the service does not answer, retry until another job may take the turn
        over, since the successors wait for this completion; then raise `StoreError`.
        """
        if turn is self._turn:
            self._turn = None
        current.end(turn)
        if not isinstance(turn, Turn):  # the handler gives it back, once it has settled the writes
            return not turn.is_lost
        turn.stop()
        try:
            writes = self._while_held(turn, lambda: self._verdicts(turn), spare_s=self.configuration.lease_s / _SPARE)
        except Exception as error:  # noqa: BLE001 - any error leaves the verdicts unknown; the next holder settles
            _log.warning("the turn of %s on %s does not count as completed: %s", turn.job, turn.lock, error)
            self._while_held(turn, lambda: turn.release(End.FAILED))
            return False
        return self._while_held(turn, lambda: turn.release(end, writes))

    def _verdicts(self, turn: Turn) -> tuple[OpenWrite, ...]:
        writes = turn.latest_writes()
        return tuple(self._decided(writes)) if writes else ()

    def _while_held(self, turn: Turn, call: Callable[[], _T], *, spare_s: float = 0.0) -> _T:
        """Retry a call without an answer until only `spare_s` of the time are left in which the turn is surely held."""
        while True:
            try:
                return call()
            except StoreError as error:
                left_s = turn.left_s - spare_s
                if error.denied or left_s <= 0:
                    raise
                time.sleep(min(self.configuration.poll_s, _PAUSE_MAX_S, left_s))

    def lend(self) -> str:
        """Return the value of `SOAL_TURN`, with which a job's process uses the turn that this coordinator holds."""
        if not isinstance(self._turn, Turn):
            raise UsageError("there is no turn to lend; call lock() first")
        return lent(self._turn, backend_uri(self.configuration.backend), self._previous)

    def nothing_to_do(self) -> None:
        """Take a turn and complete it at once, so that the successors need not wait for this job.

        Raises `TurnLostError` if the turn does not count as completed.
        """
        turn = self.lock()
        if not self.unlock(End.NOTHING):
            raise turn.lost_error()

    @contextmanager
    def turn(self) -> Iterator[Turn | BorrowedTurn]:
        """Hold a turn for a block. It completes if the block ends without an exception.

        Raises `TurnLostError` at the end of a block that has outlived its turn, or has left a write without a verdict.
        """
        turn = self.lock()
        try:
            yield turn
        except BaseException:
            with _unanswered():
                self.unlock(End.FAILED)
            raise
        if not self.unlock():
            raise turn.lost_error()

    def for_each_batch(self, function: Callable[[DataFrame, int], Any]) -> Callable[[DataFrame, int], None]:
        """Return a function for `writeStream.foreachBatch` that calls `function` in a turn of its own for each batch.

        It raises `TurnBlockedError` if there is no turn, so that Spark delivers the batch again. The turn completes
        when the stream has recorded the batch, and fails if the function raises or the stream ends first. Raises
        `SettingError` for `on.blocked=skip`, which would lose the batch. One coordinator serves one stream.
        """
        return self._batches.for_each(function)

    def run_stream(
        self, start: Callable[[], StreamingQuery], *, stop: threading.Event | None = None, restarts_max: int = 1000
    ) -> StreamingQuery:
        """Start a stream that uses `for_each_batch` of this coordinator, and wait for its end.

        If it ends because a batch had no turn or lost it, restart it: after 1 s, then after twice as long, up to a
        minute, and at most `restarts_max` times between two recorded batches. Every other error propagates.
        `stop` ends the stream. Returns the query of the last start.
        """
        return run_stream(self._batches, start, stop=stop or threading.Event(), restarts_max=restarts_max)

    def _settle_earlier(self, turn: Turn, may_go_on: Callable[[], bool]) -> None:
        settled: list[OpenWrite] = []
        try:
            for write in turn.unsettled:
                self._settle(write, may_go_on)
                settled.append(write)
            turn.settled(settled)
        except SafeWriterError as error:
            with suppress(SafeWriterError):  # the first error says more
                turn.settled(settled)
            raise TurnBlockedError(
                f"{turn.job} has no turn on {turn.lock}: an earlier holder's write is not settled ({error})."
                " Nothing was written"
            ) from error


@contextmanager
def _unanswered() -> Iterator[None]:
    """Log an error of the lock service, so that the block's own exception propagates; the lease ends the turn."""
    try:
        yield
    except SafeWriterError as error:
        _log.warning("the turn was not given back: %s", error)


def _last_job(record: Record) -> str | None:
    return record.history[-1].job if record.history else None
