"""SafeWriter: a context manager around one table write.

`opening` and `ending` take the steps of docs/concepts/protocol.md.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from safewriter.block.block import Block
from safewriter.block.ending import Ending
from safewriter.block.opening import claim, open_gate, open_skipping, record_in_turn, tell_not_entered, tell_not_made
from safewriter.block.tidy import tidy
from safewriter.block.watchdog import Heartbeat, Watchdog
from safewriter.errors import BlockOpenError, UsageError
from safewriter.record import journal
from safewriter.record.liveness import LEASE_MS

if TYPE_CHECKING:
    from types import TracebackType

    from pyspark.sql import SparkSession

    from safewriter.coordination.borrowed import BorrowedTurn
    from safewriter.coordination.turn import Turn
    from safewriter.identity import Write
    from safewriter.record.document import Checkpoint
    from safewriter.record.journal import Event

__all__ = ["OpenBlocks", "SafeWriter"]

_log = logging.getLogger(__name__)
_LEASE_EVERY_S: Final = LEASE_MS / 3000
_TURN_STEP_S: Final = 1.0


class OpenBlocks:
    """The open blocks of this process: at most one on each Spark session, and one of each name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: weakref.WeakSet[Any] = weakref.WeakSet()
        self._names: set[str] = set()

    def open(self, session: object, write: Write) -> None:
        """Register a block; raises `BlockOpenError` or `StepError`."""
        with self._lock:
            if session in self._sessions:
                raise BlockOpenError
            if write.key in self._names:
                raise write.step_error
            self._sessions.add(session)
            self._names.add(write.key)

    def close(self, session: object, write: Write) -> None:
        """Remove a block."""
        with self._lock:
            self._sessions.discard(session)
            self._names.discard(write.key)


_registry: Final = OpenBlocks()


class SafeWriter:
    """Guards one write to one table: it lands whole, once, or not at all, and the verdict is on record.

    >>> with SafeWriter(spark, "s3a://lake/accommodations", format="delta") as sw:  # doctest: +SKIP
    ...     frame.write.format("delta").mode("append").save(sw.table)
    ...     sw.success()

    Raises `SafeWriterError`, see `safewriter.errors`; with a `UsageError` or a `TryAgainError` nothing was written.

    Parameters
    ----------
    spark
        A classic session whose Delta commits pass the conditional log store (`UnguardedSessionError` says what to add).
    table
        Delta: the table's path, `s3a://bucket/path`. A table that does not exist is created by the write. Iceberg: its
        name, `catalog.namespace.table`, or a branch that it has, `catalog.namespace.table.branch_NAME`. It exists.
    format
        `delta` or `iceberg`.
    step
        Names this write when a run has several on one table. It must be the same on a retry.
    commit_point
        What counts when a deadline or a kill comes before `success()`: `write`, the table's commit decides; `success`,
        a commit that had landed is undone. An Iceberg table shows nothing before `success()`, so there both are one.
    checkpoint_bucket, warn_before_ms
        Override `SW_CHECKPOINT_BUCKET` and `SW_WARN_BEFORE_MS`.
    turn
        The turn that the write belongs to, where this thread holds none itself; see `safewriter.coordination`.
    """

    already_committed: bool
    """An earlier attempt of this run has committed this write; if the block writes all the same, nothing lands."""

    def __init__(
        self,
        spark: SparkSession,
        table: str,
        *,
        format: str = "delta",  # noqa: A002 - the word of Spark's own API
        step: str | None = None,
        commit_point: Literal["write", "success"] = "write",
        checkpoint_bucket: str | None = None,
        warn_before_ms: int | None = None,
        turn: Turn | BorrowedTurn | None = None,
    ) -> None:
        try:
            block = Block.of(
                spark,
                table,
                format=format,
                step=step,
                commit_point=commit_point,
                checkpoint_bucket=checkpoint_bucket,
                warn_before_ms=warn_before_ms,
                turn=turn,
            )
        except Exception as error:
            tell_not_made(table, error)
            raise
        self._guard(spark, block)

    @classmethod
    def around(cls, spark: SparkSession, block: Block) -> Self:
        """Return the writer of a block that a library has built; scripts cannot build blocks."""
        writer = cls.__new__(cls)
        writer._guard(spark, block)  # noqa: SLF001 - its own class
        return writer

    def _guard(self, spark: SparkSession, block: Block) -> None:
        self._spark = spark
        self._block = block
        self.already_committed = False
        self._ending: Ending | None = None
        self._watchdog: Watchdog | None = None
        self._turn_watch: Watchdog | None = None
        self._heartbeat: Heartbeat | None = None
        self._process = os.getpid()
        self._entered = False
        self._ended = False

    @property
    def table(self) -> str:
        """The table's path or name, for the write. For Iceberg it is the block's own view of the table, which exists
        only inside the block.

        Raises `UsageError` before the block: a statement there would write the table without a guard.
        """
        if not self._entered:
            raise UsageError("no block is open yet: write SafeWriter.table inside `with SafeWriter(...) as sw:`")
        return self._block.session.table

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The document as last seen by this block; after its end it holds the verdict."""
        return None if self._ending is None else self._ending.document

    @property
    def checkpoint_uri(self) -> str:
        """The URI of the checkpoint document."""
        return self._block.checkpoint_uri

    def __enter__(self) -> Self:
        """Claim the write and open the gate."""
        try:
            self._enter()
        except BaseException as error:
            tell_not_entered(self._block, error)
            raise
        return self

    def _enter(self) -> None:
        if self._entered:
            raise UsageError("a SafeWriter block can be entered only once; make a new one for another try")
        self._block.check_surroundings()
        self._block.session.verify()
        _registry.open(self._spark, self._block.write)
        self._entered = True
        try:
            self._open()
        except BaseException:
            if self._ending is not None and not self.already_committed:
                self._ending.never_began()
            self._close()
            raise

    def _open(self) -> None:
        claimed = claim(self._block)
        self._ending = Ending(self._block, claimed.checkpoint)
        self.already_committed = claimed.already_committed
        if self.already_committed:
            open_skipping(self._block)
            return
        record_in_turn(self._block, claimed)
        open_gate(self._block, claimed)
        if (turn := self._block.turn) is not None:
            self._turn_watch = Watchdog(lambda: int(min(turn.left_s, _TURN_STEP_S) * 1000), self._ending.at_lost_turn)
            self._turn_watch.start()
        if (schedule := self._block.schedule) is not None:
            self._watchdog = Watchdog(lambda: schedule.left_ms(schedule.warn_at_ms), self._ending.at_deadline)
            self._watchdog.start()
        if not self._block.journal:  # with a journal there is a supervisor, which does it for the whole job
            self._heartbeat = Heartbeat(_LEASE_EVERY_S, self._renew_lease)
            self._heartbeat.start()

    def _renew_lease(self) -> None:
        self._block.checkpoints.renew_lease(self._block.write.key, self._block.attempt.nonce)

    def success(self, *, no_change: bool = False) -> None:
        """Declare the block done: read the commit back from the table, and only then record committed.

        `no_change`: the program declares that it has nothing to write; then the write is committed, and a retry skips
        it. Raises `UsageError` if the block has made a commit anyway, and in a process that was forked in the block.

        Raises `NotCommittedError` if the table does not hold the write, or not all of it, `SupersededError` if another
        process has settled it, `DeadlineError` if the deadline came first and the write was rolled back,
        `UnknownOutcomeError` if that is unknown in time; then the write may be committed, and a retry finds out.
        """
        if os.getpid() != self._process:
            raise UsageError("this process was forked in the block, which is its parent's: call success() there")
        if self.already_committed:
            self._block.session.check_skipped()
            return
        if self._ending is not None and self._ending.succeeded:
            return
        if self._ended or self._ending is None:
            raise UsageError("the block is not open; call success() inside it, after the write")
        self._ending.succeed(no_change=no_change)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """End the block: committed, or settled as rolled back; then put the session back as it was.

        An error is raised again, except that of a statement in a skipped block that Delta did not skip by itself. In a
        process that was forked in the block this does nothing: the block is its parent's.
        """
        if os.getpid() != self._process:
            return False
        try:
            if self._watchdog is not None:
                self._watchdog.stop()
            is_left = self._end(error)
        finally:
            self._close()
        self._tidy()
        return is_left

    def _skip(self, error: BaseException | None) -> bool:
        """Return whether the block was left at a statement that could not be skipped."""
        if not isinstance(error, Exception) or not self._block.session.was_skipped(error):
            return False
        _log.warning("%s: an earlier attempt has committed this write; the block was left at its statement", self.table)
        self._tell("block_left")
        return True

    def _end(self, error: BaseException | None) -> bool:
        """Settle the write unless it has succeeded; return whether the error only means that the write was skipped."""
        if self.already_committed:
            return self._skip(error)
        if self._ending is not None and not self._ending.succeeded:
            self._ending.fail(error)
        return False

    def _tidy(self) -> None:
        """Clean up in the background, once the block is over.

        The files of a statement that outlives the block stay; a later settler deletes them. Without them the statement
        would fail before its commit, the gate would have nothing to refuse, and its rows would be lost silently.
        """
        block, is_outlived = self._block, self._block.session.is_outlived()
        if is_outlived:
            self._tell("block_outlived")
        if self._ending is not None and self._ending.succeeded:
            self._ending.finish(files_stay=is_outlived)
        elif self.already_committed and not is_outlived:
            tidy(self.checkpoint_uri, lambda: block.recovery.clean_skipped(block.write.key, block.attempt.nonce))

    def _tell(self, event: Event) -> None:
        """Log an event of the block, of which the supervisor warns."""
        if self._block.journal:
            with suppress(OSError):  # it is only a warning
                journal.append(self._block.journal, event, nonce=self._block.attempt.nonce, table=self._block.table)

    def _close(self) -> None:
        """Stop the threads and put the session back."""
        for watch in (self._watchdog, self._turn_watch):
            if watch is not None:
                watch.stop()
        if self._heartbeat is not None:
            self._heartbeat.stop()
        try:
            self._block.session.restore()
        except Exception as error:  # noqa: BLE001 - the verdict stands; the caller must see the error that ended the block
            _log.warning("the session's settings could not be restored: %s", error)
        finally:
            self._ended = True
            _registry.close(self._spark, self._block.write)
            if self._block.journal:
                with suppress(OSError):  # it only ends the lease early
                    journal.append(self._block.journal, "write_closed", nonce=self._block.attempt.nonce)
