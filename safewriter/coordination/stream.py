"""Turns for the batches of a stream, and the restart of a stream that had no turn or lost it.

Spark writes a batch into the stream's commit log only after `foreachBatch` has returned. A turn that ended before would
let a successor run on a batch that Spark may still deliver again. So a thread holds the turn until the batch is
recorded, or until the stream has ended without it.
"""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from safewriter.coordination import current
from safewriter.coordination.acquiring import uptime_s
from safewriter.coordination.configuration import PREFIX, OnBlocked
from safewriter.coordination.record import End
from safewriter.coordination.spark_stream import SparkStream
from safewriter.errors import SettingError, TurnBlockedError, TurnLostError
from safewriter.objects.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from safewriter.coordination.borrowed import BorrowedTurn
    from safewriter.coordination.configuration import Configuration
    from safewriter.coordination.turn import Turn

__all__ = ["Batches", "Stream", "Turns", "run_stream"]

_log = logging.getLogger(__name__)

_FIRST_POLL_S: Final = 0.02
_FIRST_PAUSE_S: Final = 1.0
_PAUSE_MAX_S: Final = 60.0
_STOP_POLL_S: Final = 1.0


class Turns(Protocol):
    """The part of a coordinator that a stream needs."""

    configuration: Configuration

    def lock(self, *, may_wait: Callable[[], bool], stream: str) -> Turn | BorrowedTurn:
        """Take the turn for a batch of a stream; wait while `may_wait` allows it."""
        ...

    def give_back(self, turn: Turn | BorrowedTurn, end: End) -> bool:
        """Give the turn back; return False if it does not count as completed."""
        ...


class Stream(Protocol):
    """One start of a stream."""

    run: str

    def is_active(self) -> bool:
        """Return whether the stream runs: it has not failed, and no caller has begun to stop it."""
        ...

    def has_ended(self) -> bool:
        """Return whether the stream can record no more batches."""
        ...

    def has_recorded(self, batch_id: int) -> bool:
        """Return whether the stream's commit log has the batch."""
        ...


class Batches:
    """Takes a turn for each batch of one coordinator's stream."""

    def __init__(self, coordinator: Turns, stream_of: Callable[[DataFrame], Stream] = SparkStream.of) -> None:
        self._coordinator = coordinator
        self._stream_of = stream_of
        self._holding: threading.Thread | None = None
        self._given_up: tuple[str, TurnBlockedError | TurnLostError] | None = None
        self.recorded = 0
        """How many batches the stream has recorded in their turns."""

    def for_each(self, function: Callable[[DataFrame, int], Any]) -> Callable[[DataFrame, int], None]:
        """Return the function for `foreachBatch`. Raises `SettingError` for `on.blocked=skip`."""
        if self._coordinator.configuration.on_blocked is OnBlocked.SKIP:
            raise SettingError(
                f"{PREFIX}on.blocked",
                "skip is not for streams: Spark would take the skipped batch as done; use wait or raise",
            )
        return partial(self._run, function)

    def wait(self) -> None:
        """Wait until the last batch's turn has been given back: its stream has recorded the batch, or has ended."""
        if self._holding is not None:
            self._holding.join()

    def why_given_up(self, run: str) -> TurnBlockedError | TurnLostError | None:
        """Return why a batch had no turn, or lost it, if the start `run` was the last one that ended so."""
        return self._given_up[1] if self._given_up is not None and run == self._given_up[0] else None

    def _run(self, function: Callable[[DataFrame, int], Any], frame: DataFrame, batch_id: int) -> None:
        self.wait()
        stream = self._stream_of(frame)
        try:
            self._run_in_turn(partial(function, frame, batch_id), stream, batch_id)
        except (TurnBlockedError, TurnLostError) as error:
            self._given_up = stream.run, error  # py4j loses the error's type on its way
            raise

    def _run_in_turn(self, function: Callable[[], Any], stream: Stream, batch_id: int) -> None:
        turn = self._coordinator.lock(may_wait=stream.is_active, stream=stream.run)
        try:
            function()
            turn.check()
        except BaseException:
            with suppress(StoreError):  # the lease ends the turn, and the batch's own exception goes on
                self._coordinator.give_back(turn, End.FAILED)
            raise
        current.end(turn)  # later writes of this process do not belong to the batch
        # Not a daemon: a script that ends with `availableNow` must also wait for its stream's last batch.
        self._holding = threading.Thread(
            target=self._hold, args=(turn, stream, batch_id), name="safewriter-batch", daemon=False
        )
        self._holding.start()

    def _hold(self, turn: Turn | BorrowedTurn, stream: Stream, batch_id: int) -> None:
        is_recorded = self._is_recorded(stream, batch_id)
        if is_recorded:
            self.recorded += 1
        try:
            is_given_back = self._coordinator.give_back(turn, End.COMPLETED if is_recorded else End.FAILED)
        except StoreError as error:
            _log.warning("batch %d: the turn of %s on %s ends with its lease: %s", batch_id, turn.job, turn.lock, error)
            return
        if is_recorded and not is_given_back:
            _log.warning("batch %d is recorded, but the turn of %s on %s does not count as completed: it was lost, or a"
                         " write of the batch has no verdict", batch_id, turn.job, turn.lock)  # fmt: skip

    def _is_recorded(self, stream: Stream, batch_id: int) -> bool:
        """Wait until the stream has recorded the batch or has ended; return whether it recorded the batch. If the JVM
        has not answered for a lease, the stream counts as ended.
        """
        answered_s, pause_s = uptime_s(), _FIRST_POLL_S
        while True:
            try:
                has_ended = stream.has_ended()  # first, since it may record the batch and end between the two calls
                if stream.has_recorded(batch_id):
                    return True
                if has_ended:
                    return False
                answered_s = uptime_s()
            except Exception as error:  # noqa: BLE001 - the log's store, or the JVM, does not answer
                if uptime_s() - answered_s > self._coordinator.configuration.lease_s:
                    _log.warning("nobody can tell whether batch %d is recorded: %s", batch_id, error)
                    return False
            threading.Event().wait(pause_s)
            pause_s = min(2 * pause_s, self._coordinator.configuration.poll_s)


def run_stream(
    batches: Batches,
    start: Callable[[], StreamingQuery],
    *,
    stop: threading.Event,
    restarts_max: int,
    pause_s: float = _FIRST_PAUSE_S,
) -> StreamingQuery:
    """Start a stream, and restart it whenever it has ended because of its turn; see `JobCoordinator.run_stream`."""
    restarts, recorded, first_pause_s = 0, batches.recorded, pause_s
    while True:
        query = start()
        try:
            _await_end(query, stop)
        except Exception:
            batches.wait()
            why = batches.why_given_up(str(query.runId))
            if why is None:
                raise
            if batches.recorded > recorded:
                restarts, recorded, pause_s = 0, batches.recorded, first_pause_s
            if restarts >= restarts_max:
                raise
        else:
            batches.wait()
            return query
        restarts += 1
        _log.warning("the stream starts again in %.0f s: %s", pause_s, why)
        if stop.wait(pause_s):
            return query
        pause_s = min(2 * pause_s, _PAUSE_MAX_S)


def _await_end(query: StreamingQuery, stop: threading.Event) -> None:
    """Wait until the stream has ended; stop it on `stop`, or if this thread is interrupted."""
    try:
        while not query.awaitTermination(_STOP_POLL_S):  # type: ignore[arg-type]  # seconds; a fraction is fine
            if stop.is_set():
                query.stop()
    except BaseException as error:
        if not isinstance(error, Exception):
            query.stop()
        raise
