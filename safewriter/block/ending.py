"""From an open block to its verdict: read back and committed, or halted and settled.

`Ending` holds the document as this block last saw it. The program and the watchdog may end the block at the same time:
the one that gets the lock settles, the other one reads the verdict.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from safewriter.block.tidy import tidy
from safewriter.block.until_answered import until_answered
from safewriter.deadline import epoch_ms
from safewriter.errors import (
    DeadlineError,
    NotCommittedError,
    SafeWriterError,
    SupersededError,
    TurnLostError,
    UnknownOutcomeError,
    UsageError,
)
from safewriter.objects.store import StoreError
from safewriter.record import journal
from safewriter.record.document import NO_CHANGE, OPEN, Status
from safewriter.settle.recovery import Cause, Evidence
from safewriter.tables.table import Move, UndecidableError
from safewriter.tables.thrown import of_existing_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.block.block import Block
    from safewriter.record.checkpoints import HeldCheckpoint
    from safewriter.record.document import Checkpoint
    from safewriter.record.journal import Event
    from safewriter.tables.session import BlockReport

__all__ = ["Ending"]

_log = logging.getLogger(__name__)
_QUIET_S: Final = 30.0
"""How long a failed block waits for its tasks to end before it leaves their files to a later settler."""
_LOSERS_S: Final = 5.0
"""How long a committed block waits for them, in the background."""
_ANSWER_S, _ANSWER_MAX_S = 300.0, 3600.0
"""How long success() waits for S3 without a deadline, and at most with one."""


class Ending:
    """The end of one claimed block."""

    def __init__(self, block: Block, checkpoint: HeldCheckpoint, sleep: Callable[[float], None] = time.sleep) -> None:
        self._block = block
        self._checkpoint = checkpoint
        self._sleep = sleep
        self._one_at_a_time = threading.Lock()
        self._after_deadline = False
        self._noted = False
        self._unanswered = False
        self._cancelled_for_turn = False
        self.succeeded = False
        """The program has called `success()` and the table has confirmed it: no settler undoes the write any more."""

    @property
    def document(self) -> Checkpoint:
        """The document as last seen by this block."""
        return self._checkpoint.document

    # -- by the program ----------------------------------------------------------------------------------------------

    def succeed(self, *, no_change: bool = False) -> None:
        """Read the commit back and record committed; raises the errors of `SafeWriter.success`.

        `no_change`: the program says that it has nothing to write.
        """
        with self._one_at_a_time:
            if self._after_deadline:
                self._accept_deadline(None)
            else:
                self._commit(no_change=no_change)
            self.succeeded = True
            self._tell_supervisor("succeeded")

    def fail(self, error: BaseException | None) -> None:
        """Settle a block that ended without `success()`, and undo its commit. `error`: the user's exception, if any.

        A refusal by the gate is raised as an error of its own type. Raises `DeadlineError` if the watchdog was first.
        """
        with self._one_at_a_time:
            if not self._after_deadline:
                self._roll_back(error)
                return
            self._clean_after_deadline()
            self._accept_deadline(error)
        raise DeadlineError(
            f"the deadline came while the block was open; the write is committed (see {self._block.checkpoint_uri})"
        ) from error

    def finish(self, *, files_stay: bool) -> None:
        """Clean up in the background after a success, once the session is restored. `files_stay`: a statement may still
        need the block's files.
        """
        # Only now: a statement after success() leaves files, too.
        left_nothing = not files_stay and self._has_left_nothing()
        tidy(
            self._block.checkpoint_uri,
            partial(self._clean_after_success, files_stay=files_stay, left_nothing=left_nothing),
        )

    def never_began(self) -> None:
        """Settle a claimed write whose block could not be opened, so that no retry has to wait for it."""
        nonce = self._block.attempt.nonce
        evidence = Evidence(self.document.epoch, nonce, nothing_sent=True, requests_ended=True)
        if self._block.session.has_begun:  # another thread of the script may have used the gate already
            _, evidence = self._halt("the block could not be opened", _QUIET_S)
        try:
            self._settle(Cause.EXCEPTION, evidence)
        except SafeWriterError as error:
            _log.warning("%s stays open for the next settler: %s", self._block.checkpoint_uri, error)

    # -- by the watchdog ---------------------------------------------------------------------------------------------

    def at_deadline(self) -> None:
        """Settle now, on the watchdog's thread. If that fails, end the process: another settler settles the write."""
        schedule = self._block.schedule
        if schedule is None:
            raise AssertionError  # for the type checker: without a deadline there is no watchdog
        patience_s = (schedule.quiet_by_ms - schedule.warn_at_ms) / 1000
        # A hung JVM answers no call, and py4j waits for ever. The process must end before the deadline.
        exit_after_s = (schedule.exit_at_ms - schedule.warn_at_ms) / 1000
        last_resort = threading.Timer(exit_after_s, os._exit, (DeadlineError.exit_code,))
        last_resort.daemon = True
        last_resort.start()
        mine = self._one_at_a_time.acquire(timeout=patience_s)
        try:
            if not self.succeeded:
                self._after_deadline = True
                self._tell_supervisor("deadline")
                _, evidence = self._halt("the deadline is near", patience_s)
                self._settle(Cause.DEADLINE, evidence)
        except Exception:  # noqa: BLE001 - no other thread can act before the deadline
            _log.exception(
                "the deadline is here and %s could not be settled; ending the process", self._block.checkpoint_uri
            )
            os._exit(DeadlineError.exit_code)
        finally:
            last_resort.cancel()
            if mine:
                self._one_at_a_time.release()

    def at_lost_turn(self) -> None:
        """Shut the gate, on the watchdog's thread: another job may have the turn by now."""
        session = self._block.session
        try:
            session.shut("the turn has ended")
            if not self.succeeded:
                self._cancelled_for_turn = True
                session.cancel()
        except Exception as error:  # noqa: BLE001 - py4j raises many kinds when the JVM is gone; the next holder fences
            _log.warning("the turn has ended, and the JVM does not answer (%s)", error)

    def _tell_supervisor(self, event: Event) -> None:
        """Log the deadline, or the success, to the journal: a stream or the user's code may swallow the exception or
        change its type. A commit alone does not say that the script has accepted it.
        """
        if self._block.journal:
            with suppress(OSError):
                journal.append(self._block.journal, event, nonce=self._block.attempt.nonce)

    def _accept_deadline(self, error: BaseException | None) -> None:
        """Return if the watchdog's verdict is committed, raise `DeadlineError` otherwise."""
        document = self.document
        if document.status is not Status.COMMITTED or document.owner != self._block.attempt.nonce:
            raise DeadlineError(
                f"the deadline came while the block was open; {self._block.table} is {document.status}"
                f" ({document.reason})"
            ) from error

    def _clean_after_deadline(self) -> None:
        """Clean up if the watchdog could not wait for the tasks: their statement has ended, so they end soon."""
        document = self.document
        if document.status in OPEN or document.attempt.cleaned:
            return
        patience_s = self._block.patience_s(_QUIET_S, lambda schedule: schedule.terminate_at_ms)
        _, evidence = self._halt("the deadline is near", patience_s)
        if evidence.requests_ended:
            self._clean()

    # -- the parts ---------------------------------------------------------------------------------------------------

    def _commit(self, *, no_change: bool) -> None:
        self._block.session.shut("success() was called")  # the declared write must not change any more
        self._unanswered = True
        try:
            until_answered(partial(self._commit_once, no_change=no_change), self._left_s, self._sleep)
        except (StoreError, UndecidableError, UnknownOutcomeError) as error:
            raise UnknownOutcomeError(
                f"could not find out whether {self._block.table} holds this block's write: {error}"
            ) from error
        except SafeWriterError:
            self._unanswered = False  # the table or the document has answered
            raise

    def _left_s(self, waited_s: float) -> float:
        """Return how much longer to wait for an answer: until the watchdog's time, if there is a deadline."""
        at_most_s = _ANSWER_S if self._block.schedule is None else _ANSWER_MAX_S
        return self._block.patience_s(at_most_s - waited_s, lambda schedule: schedule.warn_at_ms)

    def _commit_once(self, *, no_change: bool) -> None:
        block, checkpoint = self._block, self._checkpoint
        if self._after_deadline:  # the watchdog could not wait for the last try
            self._accept_deadline(None)
            return
        if block.turn is not None and not block.session.report().passed:
            block.turn.check()
        if not no_change:
            block.session.publish()
        elif block.session.has_written():
            raise UsageError(f"success(no_change=True) is not true: the block has written rows to {block.table}")
        report = block.session.report()
        self._noted = report.noted
        move = self._nothing_to_write(report) if no_change else self._confirmed(report)
        moved = checkpoint.document.moved(
            move.status,
            reason=move.reason,
            settled_ms=epoch_ms(),
            settled_by=Cause.SUCCESS.value,
            **move.record,
        )
        won = block.checkpoints.replace(checkpoint, moved)
        if won is None:
            self._lost()
        else:
            self._checkpoint = won

    def _confirmed(self, report: BlockReport) -> Move:
        if report.lost is not None:
            raise NotCommittedError(f"the block's write to {self._block.table} is not whole: {report.lost}")
        document = self._checkpoint.document
        return self._block.recovery.table_of(document).confirm(document, report)

    def _nothing_to_write(self, report: BlockReport) -> Move:
        """Return committed; raise `UsageError` if the session knows of strays or of a refused statement."""
        if (known := report.strays or report.lost) is not None:
            raise UsageError(f"success(no_change=True) is not true of {self._block.table}: {known}")
        return Move(Status.COMMITTED, NO_CHANGE)

    def _lost(self) -> None:
        """Read the document again: another process has changed it, or our own request did and its answer was lost."""
        stored = self._block.checkpoints.read(self._block.write.key)
        if stored is None:
            raise UnknownOutcomeError(f"{self._block.checkpoint_uri} is gone")
        self._checkpoint = stored
        document = self.document
        if document.status is not Status.COMMITTED or document.owner != self._block.attempt.nonce:
            raise SupersededError(
                f"{self._block.checkpoint_uri}: settled as {document.status} by somebody else ({document.reason})"
            )

    def _roll_back(self, error: BaseException | None) -> None:
        report, evidence = self._halt("the block has failed", _QUIET_S)
        # After success() was called, a missing answer is no reason to undo: the table decides.
        cause = Cause.UNANSWERED if self._unanswered else Cause.EXCEPTION
        if self._block.has_lost_turn:  # as the next holder settles this write before its own turn begins
            # With commit_point="success" that is an undo, which so precedes all that the next holder writes.
            cause = Cause.TURN
        try:
            self._settle(cause, evidence)
        except UnknownOutcomeError as unknown:
            if self._block.has_lost_turn:
                self._raise_lost_turn(str(unknown), error)
            if error is None:
                raise
            error.add_note(str(unknown))
            return
        if self.document.attempt.settled_by != cause.value and evidence.requests_ended:
            # Another settler settled the write, and perhaps cleaned it, while this process was not running.
            self._clean()
        self._explain(error, report)

    def _explain(self, error: BaseException | None, report: BlockReport | None) -> None:
        """Add a note about the verdict to the user's exception."""
        document, table = self.document, self._block.table
        is_committed = document.status is Status.COMMITTED
        if self._block.has_lost_turn and (not is_committed or self._cancelled_for_turn):
            self._raise_lost_turn("the write is committed, and a retry skips it" if is_committed else "", error)
        strays = None if report is None else report.strays
        if error is not None and strays is not None:
            error.add_note(f"{table}: {strays}")
        if error is None:
            _log.warning("block left without success(): %s is %s (%s)", table, document.status, document.reason)
        elif isinstance(error, Exception) and report is not None and (refusal := report.error_of(error)) is not None:
            raise refusal from error
        elif any(attempt.may_have_created for attempt in document.attempts[:-1]) and of_existing_table(error):
            error.add_note("an earlier attempt of this write began to create the table; append to it to retry")
        elif document.undo_refused is not None:
            error.add_note(f"{table}: the block failed, but its commit stays: {document.undo_refused}")
        elif is_committed:  # a commit without an answer, or one that another settler has found first
            error.add_note(f"{table}: the write is committed after all; a retry skips it")

    def _raise_lost_turn(self, verdict: str, error: BaseException | None) -> None:
        """Raise `TurnLostError` from an error that our own cancellation may have caused."""
        if self._block.turn is not None:
            lost = self._block.turn.lost_error()
            raise (TurnLostError(f"{lost}; {self._block.table}: {verdict}") if verdict else lost) from error

    def _halt(self, reason: str, patience_s: float) -> tuple[BlockReport | None, Evidence]:
        """Stop the block's work; return the session's report (None if the JVM does not answer) and the evidence."""
        epoch, session = self.document.epoch, self._block.session
        try:
            session.shut(reason)
            session.cancel()
            quiet = session.wait_until_quiet(
                self._block.patience_s(patience_s, lambda schedule: schedule.deadline.at_ms)
            )
            report = session.report()
        except Exception as error:  # noqa: BLE001 - py4j raises many kinds when the JVM is gone
            _log.warning("the JVM does not answer (%s); the table will show what has happened", error)
            return None, Evidence(epoch, self._block.attempt.nonce)
        return report, Evidence(
            epoch,
            nothing_sent=not report.passed,
            requests_ended=quiet and report.answered,
            lost=report.lost,
            strays=report.strays,
            nonce=self._block.attempt.nonce,
        )

    def _settle(self, cause: Cause, evidence: Evidence) -> None:
        checkpoint = self._block.recovery.settle(self._block.write.key, cause, evidence)
        if checkpoint is None:
            raise UnknownOutcomeError(f"{self._block.checkpoint_uri} is gone, so the write could not be settled")
        self._checkpoint = checkpoint

    def _clean(self) -> None:
        """Remove the attempt's leftovers, now that all its requests have ended."""
        key, nonce = self._block.write.key, self._block.attempt.nonce
        tidy(self._block.checkpoint_uri, lambda: self._block.recovery.clean(key, ended_nonce=nonce))

    def _has_left_nothing(self) -> bool:
        # Files of an earlier attempt may have arrived after its clean-up, and the watchdog cancels tasks.
        if self.document.epoch > 1 or self._after_deadline:
            return False
        session = self._block.session
        try:
            return not session.may_have_left_files(session.report())
        except Exception as error:  # noqa: BLE001 - py4j raises many kinds when the JVM is gone; the verdict stands
            _log.warning("the JVM does not answer (%s); cleaning up as if the block had left files", error)
            return False

    def _clean_after_success(self, *, files_stay: bool, left_nothing: bool) -> None:
        document, checkpoints = self.document, self._block.checkpoints
        if document.attempt.cleaned:
            checkpoints.unmark(document.write_key, self._block.attempt.nonce)
        if self._noted:  # the commit has its slot for good, so no settler needs the note
            checkpoints.forget_note(document.write_key, document.epoch)
        if files_stay or all(attempt.cleaned for attempt in document.attempts):
            return
        if left_nothing or self._is_quiet():
            nonce = self._block.attempt.nonce
            self._block.recovery.clean(document.write_key, ended_nonce=nonce, left_nothing=left_nothing)

    def _is_quiet(self) -> bool:
        """Return whether no task of the block can upload any more: one that Spark has killed, or runs twice, may do so
        behind its job. Else a later settler cleans up.
        """
        try:
            return self._block.session.wait_until_quiet(_LOSERS_S)
        except Exception as error:  # noqa: BLE001 - py4j raises many kinds when the JVM is gone; the verdict stands
            _log.warning("the JVM does not answer (%s); a later settler removes leftover files", error)
            return False
