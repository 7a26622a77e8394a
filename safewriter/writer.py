"""SafeWriter: a context manager around one table write. Its methods are the steps of PROTOCOL.md, in order."""

from __future__ import annotations

import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, Self

from safewriter import journal
from safewriter.checkpoint import LEASE_MS, Checkpoints
from safewriter.claim import Claim, Claimer
from safewriter.deadline import Deadline, epoch_ms
from safewriter.errors import (
    DeadlineError,
    NotCommittedError,
    SafeWriterError,
    SettingError,
    SupersededError,
    TryAgainError,
    UnknownOutcomeError,
    UnsupportedError,
    UsageError,
)
from safewriter.identity import Attempt, Run, Write, canonical_table
from safewriter.objects.s3 import open_store, table_store
from safewriter.objects.store import StoreError
from safewriter.readback import ReadBack
from safewriter.recovery import Cause, Evidence, Recovery
from safewriter.registry import Registry
from safewriter.settings import Settings
from safewriter.state import CommitPoint, Status
from safewriter.tables.delta.history import DeltaHistory, RetentionGapError
from safewriter.tables.delta.revert import UNDOABLE_FEATURES
from safewriter.tables.delta.session import DeltaSession, TableState
from safewriter.watchdog import Heartbeat, Watchdog

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from pyspark.sql import SparkSession

    from safewriter.checkpoint import HeldCheckpoint
    from safewriter.state import Checkpoint
    from safewriter.tables.delta.session import GateState

__all__ = ["SafeWriter"]

_log = logging.getLogger(__name__)
_LEASE_EVERY_S: Final = LEASE_MS / 3000
_QUIET_S: Final = 30.0
"""How long a failed block waits for its tasks to end before it leaves their files to a later look."""

_registry: Final = Registry()


class SafeWriter:
    """Guards one write to one table: it lands whole, once, or not at all, and the verdict is on record.

    >>> with SafeWriter(spark, "s3a://lake/accommodations", format="delta") as sw:  # doctest: +SKIP
    ...     frame.write.format("delta").mode("append").save(sw.table)
    ...     sw.success()

    Parameters
    ----------
    spark
        A classic session whose Delta commits pass the conditional log store (`UnguardedSessionError` says what to add).
    table
        The table's path, `s3a://bucket/path`. A table that does not exist is created by the write.
    format
        `delta`.
    step
        Names this write when a run has several on one table. It must be the same on a retry.
    commit_point
        What counts when a deadline or a kill comes before `success()`: `write`, the table's commit decides; `success`,
        a commit that had landed is undone.
    checkpoint_bucket, warn_before_ms
        Override `SW_CHECKPOINT_BUCKET` and `SW_WARN_BEFORE_MS`.

    Raises `SafeWriterError`, see `safewriter.errors`; with a `UsageError` or a `TryAgainError` nothing was written.
    """

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
    ) -> None:
        if format != "delta":
            raise UnsupportedError(f"format {format!r} is not guarded; use 'delta'")
        settings = Settings.from_environment(
            os.environ, checkpoint_bucket=checkpoint_bucket, warn_before_ms=warn_before_ms
        )
        self.table = table.rstrip("/")
        """The table's path as it is to be given to the write."""
        self.already_committed = False
        """An earlier attempt of this run has committed this write; a write that is made all the same lands nowhere."""
        self._write = Write(Run.from_environment(os.environ), canonical_table(table), format, step)
        self._attempt = Attempt.draw()
        self._commit_point = _commit_point(commit_point)
        self._deadline = Deadline.from_environment(os.environ)
        self._lead_ms = 0 if self._deadline is None else self._deadline.lead_ms(settings.warn_before_ms)
        self._checkpoints = Checkpoints(open_store(settings.checkpoint_bucket))
        self._recovery = Recovery(
            self._checkpoints, table_store, clock=epoch_ms, audit_log=settings.audit_log, may_go_on=self._in_time
        )
        self._read_back = ReadBack(self.table, DeltaHistory(table_store(str(self._write.table)), epoch_ms))
        self._spark = spark
        self._session = DeltaSession(spark, self.table)
        self._journal = os.environ.get("SOAL_JOURNAL")
        self._held: HeldCheckpoint | None = None
        self._succeeded = False
        self._entered = False
        self._ended = False
        self._ending = threading.Lock()
        self._watchdog: Watchdog | None = None
        self._heartbeat: Heartbeat | None = None

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The document as last seen by this block: after its end, the verdict."""
        return None if self._held is None else self._held.document

    @property
    def checkpoint_uri(self) -> str:
        """Where the document lies."""
        return self._checkpoints.uri(self._write.key)

    # -- the beginning -----------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Claim the write and open the gate."""
        if self._entered:
            raise UsageError("a SafeWriter block is entered once; make a new one for another try")
        self._session.verify()
        _registry.open(self._spark, self._write)
        self._entered = True
        try:
            claim = self._claimed()
            self._held, self.already_committed = claim.held, claim.already_committed
            if claim.already_committed:
                self._session.skip(write_key=self._write.key, nonce=self._attempt.nonce)
            else:
                self._begin(claim.held)
        except BaseException:
            if self._held is not None and not self.already_committed:
                self._settle_unopened(self._held.document.epoch)
            self._abandon()
            raise
        return self

    def _settle_unopened(self, epoch: int) -> None:
        """The write is claimed, but the block could not be opened: nothing was written, and nobody need wait for it."""
        try:
            evidence = Evidence(epoch, nothing_sent=True, quiet=True)
            self._held = self._recovery.settle(self._write.key, Cause.EXCEPTION, evidence) or self._held
        except SafeWriterError as error:
            _log.warning("%s stays open for the next look: %s", self.checkpoint_uri, error)

    def _claimed(self) -> Claim:
        """Claim, and name what went wrong with the checkpoint bucket."""
        try:
            return self._claim()
        except StoreError as error:
            if error.denied:
                problem = f"{error}. The job needs GetObject, PutObject and DeleteObject there"
                raise SettingError("SW_CHECKPOINT_BUCKET", problem) from error
            raise TryAgainError(f"nothing was written, the checkpoint could not be: {error}") from error
        except Exception:
            # Every request of the claim was answered, so nothing of this attempt can still arrive.
            self._tidy(lambda: self._checkpoints.unmark(self._write.key, self._attempt.nonce))
            raise

    def _claim(self) -> Claim:
        """Steps 1 to 4. The marker's PUT and the look at the table run side by side: neither needs the other."""
        if self._journal:
            journal.append(
                self._journal,
                "write_opened",
                writeKey=self._write.key,
                nonce=self._attempt.nonce,
                table=str(self._write.table),
                format=self._write.format,
                step=self._write.step,
                commitPoint=self._commit_point.value,
                checkpoint=self.checkpoint_uri,
            )
        claimer = Claimer(
            self._checkpoints,
            self._recovery,
            self._write,
            self._attempt,
            self._commit_point,
            self._deadline,
            self._lead_ms,
        )
        with ThreadPoolExecutor(1) as pool:
            marking = pool.submit(claimer.mark)
            before = self._session.state()
            marking.result()
        self._check_undoable(before)
        return claimer.claim(before)

    def _check_undoable(self, before: TableState) -> None:
        """Refuse what `commit_point="success"` promises and the table does not allow."""
        if self._commit_point is not CommitPoint.SUCCESS:
            return
        unknown = sorted(set(before.features) - UNDOABLE_FEATURES)
        if before.append_only or unknown:
            what = "it is append-only" if before.append_only else f"it uses {', '.join(unknown)}"
            raise UnsupportedError(
                f"{self.table}: a commit could not be undone ({what}), so commit_point='success' cannot be kept"
            )

    def _begin(self, held: HeldCheckpoint) -> None:
        """Step 5."""
        document = held.document
        note = None
        if document.attempt.version_before < 0:
            key = self._checkpoints.creation_key(document.write_key, document.epoch)
            # The gate writes it through the same file system as the table.
            note = self._checkpoints.store.uri(key).replace("s3://", self.table.split("://", 1)[0] + "://", 1)
        self._session.begin(
            write_key=document.write_key,
            epoch=document.epoch,
            nonce=document.owner,
            version_before=document.attempt.version_before,
            file_prefix=document.attempt.prefix,
            latest_start_ms=None if self._deadline is None else self._deadline.at_ms - self._lead_ms,
            creation_note=note,
            journal=self._journal,
        )
        if self._deadline is not None:
            self._watchdog = Watchdog(self._deadline, self._lead_ms, self._at_deadline)
            self._watchdog.start()
        if not self._journal:  # with a journal there is a supervisor, which does it for the whole job
            self._heartbeat = Heartbeat(_LEASE_EVERY_S, self._renew_lease)
            self._heartbeat.start()

    def _renew_lease(self) -> None:
        self._checkpoints.renew_lease(self._write.key, self._attempt.nonce)

    # -- success -----------------------------------------------------------------------------------------------------

    def success(self) -> None:
        """Declare the block done: reads the commit back from the table, and only then says committed.

        Raises `NotCommittedError` if the table does not hold it, `SupersededError` if somebody else has settled the
        write, `DeadlineError` if the deadline came first and the write was rolled back.
        """
        if self.already_committed or self._succeeded:
            self._succeeded = True
            return
        if self._ended:
            raise UsageError("the block is over; call success() inside it, after the write")
        self._await_watchdog()
        with self._ending:
            if self._watchdog is not None and self._watchdog.fired.is_set():
                self._after_deadline(None)
            else:
                self._commit()
            self._succeeded = True

    def _commit(self) -> None:
        held = self._current()
        self._session.shut("success() was called")  # what is declared a success now must not change any more
        try:
            evidence = self._read_back.evidence(held.document, self._session.gate())
            moved = held.document.moved(
                Status.COMMITTED,
                settled_ms=epoch_ms(),
                settled_by="success",
                cleaned=not self._session.may_have_left_files(),
                **evidence,
            )
            won = self._checkpoints.replace(held, moved)
            if won is None:
                self._lost()
            else:
                self._held = won
        except (StoreError, RetentionGapError) as error:
            raise UnknownOutcomeError(
                f"whether {self.table} holds this block's write could not be told: {error}"
            ) from error

    def _lost(self) -> None:
        """Somebody else has changed the document: only what it says now counts."""
        stored = self._checkpoints.read(self._write.key)
        self._held = stored or self._held
        document = self._current().document
        if document.status is not Status.COMMITTED or document.owner != self._attempt.nonce:
            raise SupersededError(
                f"{self.checkpoint_uri}: settled as {document.status} by somebody else ({document.reason})"
            )

    # -- the end -----------------------------------------------------------------------------------------------------

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        """End the block: committed, or settled as rolled back; then put the session back as it was."""
        try:
            self._end(error)
        finally:
            self._abandon()
        return False

    def _end(self, error: BaseException | None) -> None:
        if self.already_committed:
            self._tidy(lambda: self._checkpoints.unmark(self._write.key, self._attempt.nonce))
            return
        if self._watchdog is not None:
            self._watchdog.stop()
        if self._succeeded:
            self._tidy(self._clean_after_success)
            return
        self._await_watchdog()
        with self._ending:
            if self._watchdog is not None and self._watchdog.fired.is_set():
                self._after_deadline(error)
                raise DeadlineError(
                    f"the deadline came while the block was open; the write is committed (see {self.checkpoint_uri})"
                ) from error
            self._roll_back(error)

    def _roll_back(self, error: BaseException | None) -> None:
        """As an exception: settle with undo. The user's exception goes on; a refusal by the gate gets a type of its
        own.
        """
        seen, evidence = self._halt("the block has failed", _QUIET_S)
        try:
            self._held = self._recovery.settle(self._write.key, Cause.EXCEPTION, evidence) or self._held
        except UnknownOutcomeError as unknown:
            if error is None:
                raise
            error.add_note(str(unknown))
            return
        document = self._current().document
        if document.attempt.settled_by != Cause.EXCEPTION.value and evidence.quiet:
            # Settled, and perhaps cleaned, by somebody else while this process was not running.
            self._tidy(lambda: self._recovery.clean(self._write.key, quiet_nonce=self._attempt.nonce))
        if error is None:
            _log.warning("block left without success(): %s is %s (%s)", self.table, document.status, document.reason)
        elif isinstance(error, Exception) and seen is not None and (named := seen.error_of(error)) is not None:
            raise named from error
        elif "DELTA_PATH_EXISTS" in str(error) and any(one.version_before < 0 for one in document.attempts[:-1]):
            error.add_note("an earlier attempt of this write began to create the table; use mode('append') to retry")
        elif document.undo_refused is not None:
            error.add_note(f"{self.table}: the block failed, but its commit stays: {document.undo_refused}")

    def _at_deadline(self) -> None:
        """On the watchdog's thread: settle now. What cannot be settled in time ends the process, and others settle
        it.
        """
        patience_s = self._lead_ms / 4000
        # A JVM that hangs answers no call, and py4j waits for ever. The process must be gone before the deadline.
        last_resort = threading.Timer(3 * patience_s, os._exit, (DeadlineError.exit_code,))
        last_resort.daemon = True
        last_resort.start()
        held = self._ending.acquire(timeout=patience_s)
        try:
            if not self._succeeded:
                _, evidence = self._halt("the deadline is near", patience_s)
                settled = self._recovery.settle(self._write.key, Cause.DEADLINE, evidence)
                self._held = settled or self._held
        except Exception:  # noqa: BLE001 - whatever it was, this thread is the last that can act
            _log.exception("the deadline is here and %s could not be settled; ending the process", self.checkpoint_uri)
            os._exit(DeadlineError.exit_code)
        finally:
            last_resort.cancel()
            if held:
                self._ending.release()

    def _halt(self, reason: str, patience_s: float) -> tuple[GateState | None, Evidence]:
        """Stop the block's work and say what is known of it; of a JVM that does not answer, nothing is."""
        epoch = self._current().document.epoch
        try:
            self._session.shut(reason)
            self._session.cancel()
            quiet = self._session.wait_until_quiet(min(patience_s, max(0.0, self._remaining_ms() / 1000)))
            seen = self._session.gate()
        except Exception as error:  # noqa: BLE001 - py4j raises many kinds when the JVM is gone
            _log.warning("the JVM does not answer (%s); the table will tell what has happened", error)
            return None, Evidence(epoch)
        return seen, Evidence(epoch, nothing_sent=not seen.passed, quiet=quiet and seen.answered)

    def _await_watchdog(self) -> None:
        """Let a watchdog that has begun finish first: it settles, and only its verdict counts."""
        if self._watchdog is not None and self._watchdog.fired.is_set():
            self._watchdog.join(self._lead_ms / 1000)

    def _after_deadline(self, error: BaseException | None) -> None:
        """Return if the watchdog's verdict is committed, raise `DeadlineError` otherwise."""
        document = self._current().document
        if document.status is not Status.COMMITTED or document.owner != self._attempt.nonce:
            raise DeadlineError(
                f"the deadline came while the block was open; {self.table} is {document.status} ({document.reason})"
            ) from error

    def _abandon(self) -> None:
        """Stop the threads and put the session back."""
        if self._watchdog is not None:
            self._watchdog.stop()
        if self._heartbeat is not None:
            self._heartbeat.stop()
        try:
            self._session.restore()
        except Exception as error:  # noqa: BLE001 - the verdict stands; what ended the block must be what is seen
            _log.warning("the session's settings could not be put back: %s", error)
        self._ended = True
        landed = self._held is not None and self._held.document.status is not Status.ROLLED_BACK
        _registry.close(self._spark, self._write, landed=landed)
        if self._journal:
            with suppress(OSError):  # it ends the lease early, no more
                journal.append(self._journal, "write_closed", nonce=self._attempt.nonce)

    def _clean_after_success(self) -> None:
        document = self._current().document
        if document.attempt.cleaned:
            self._checkpoints.unmark(self._write.key, self._attempt.nonce)
        if document.attempt.version_before < 0:  # its slot is taken for good, so the note has no more to say
            self._checkpoints.forget_creation(self._write.key, document.epoch)
        if any(not attempt.cleaned for attempt in document.attempts):
            self._recovery.clean(self._write.key, quiet_nonce=self._attempt.nonce)

    def _tidy(self, work: Callable[[], object]) -> None:
        """Run hygiene beside the job; the interpreter waits for it, a kill leaves it to the next look."""

        def run() -> None:
            try:
                work()
            except (StoreError, SafeWriterError, LookupError) as error:
                _log.warning("cleaning up after %s is left to a later look: %s", self.checkpoint_uri, error)

        threading.Thread(target=run, name="safewriter-tidy").start()

    # -- small things ------------------------------------------------------------------------------------------------

    def _current(self) -> HeldCheckpoint:
        if self._held is None:
            raise NotCommittedError("the block is not open; use SafeWriter in a `with` statement")
        return self._held

    def _remaining_ms(self) -> int:
        return 2**62 if self._deadline is None else self._deadline.remaining_ms()

    def _in_time(self) -> bool:
        return self._remaining_ms() > 0


def _commit_point(text: str) -> CommitPoint:
    try:
        return CommitPoint(text)
    except ValueError:
        raise UnsupportedError(f"commit_point {text!r} is neither 'write' nor 'success'") from None
