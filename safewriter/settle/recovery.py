"""Settle: find the true verdict of a write, and record it. Guard, supervisor, retry, sweeper and operator all settle
through this code.

The verdict is always read from the table; the document follows it. Only a format's adapter (`tables/`) reads and
changes tables. docs/concepts/settling.md numbers the steps S1 to S6.
"""

from __future__ import annotations

import copy
import dataclasses
import logging
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from safewriter.bounds import shortened
from safewriter.errors import UnknownOutcomeError
from safewriter.objects.store import StoreError
from safewriter.record.checkpoints import past_grace
from safewriter.record.document import OPEN, CommitPoint, Status
from safewriter.tables.format import Settling
from safewriter.tables.registry import format_of
from safewriter.tables.table import Intent, Move, UndecidableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from safewriter.deadline import Clock
    from safewriter.objects.store import ObjectStore
    from safewriter.record.checkpoints import Checkpoints, HeldCheckpoint, StoredCheckpoint
    from safewriter.record.document import AttemptRecord, Checkpoint
    from safewriter.tables.table import Table

__all__ = ["Cause", "Evidence", "Recovery"]

_ROUNDS_MAX: Final = 50
_MOVES_MAX: Final = 3
"""To rolling_back, to the verdict, and a spare one."""
_log = logging.getLogger(__name__)


class Cause(Enum):
    """Why a write is settled. An exception of the program means that the write failed. A kill from outside does not,
    nor does an exception that `success()` raises because S3 did not answer.
    """

    SUCCESS = "success"
    UNANSWERED = "success() without an answer"
    EXCEPTION = "exception"
    DEADLINE = "deadline"
    KILLED = "killed"
    RETRY = "retry"
    TURN = "the turn was taken over"
    SWEEPER = "sweeper"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Facts about the attempt that only its settler knows.

    `epoch`, `nonce`: settle only this epoch, and only while this attempt owns it; None: any. A guard settles only its
    own; two attempts have the same epoch if the document was deleted between their claims.
    `nothing_sent`: no commit of this attempt was ever sent, so none can land and no fence is needed. `requests_ended`:
    none of its requests can still arrive. `cleans_later`: the settler cleans up by itself after the verdict. `lost`:
    why a commit of the attempt lacks rows of its block. `strays`: which rows the block's statements have committed past
    the block; they stay in the table.
    """

    epoch: int | None = None
    nonce: str | None = None
    nothing_sent: bool = False
    requests_ended: bool = False
    cleans_later: bool = False
    lost: str | None = None
    strays: str | None = None

    def incomplete(self, verdict: Status) -> str | None:
        """Return why the owner must look at a write with this verdict before a retry; None if there is no reason."""
        return self.strays or (self.lost if verdict is Status.COMMITTED else None)


class Recovery:
    """Settles and cleans the writes of one checkpoint bucket, without Spark.

    `table_store` opens the object store of a table by its canonical `s3://` URI. `secrets`: the properties
    of the table's catalog in the session that writes; `spark_settings`: settings that name catalogs. Without both the
    settler's environment names them, never a document. With a `rehearsal` no catalog is changed;
    each change is appended to that list instead.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        table_store: Callable[[str], ObjectStore],
        *,
        clock: Clock,
        audit_log: bool = True,
        may_go_on: Callable[[], bool] = lambda: True,
        secrets: Mapping[str, str] | None = None,
        spark_settings: Mapping[str, str] | None = None,
        rehearsal: list[str] | None = None,
    ) -> None:
        self._checkpoints = checkpoints
        self.settling = Settling(
            table_store, checkpoints, clock, may_go_on, secrets or {}, spark_settings or {}, rehearsal
        )
        self._clock = clock
        self._audit_log = audit_log

    def within(self, may_go_on: Callable[[], bool]) -> Recovery:
        """Return the same settler with another end of its time."""
        other = copy.copy(self)
        other.settling = dataclasses.replace(self.settling, may_go_on=may_go_on)
        return other

    def table_of(self, document: Checkpoint) -> Table:
        """Return the table that a document is about; raise `UnsupportedError` for an unknown format."""
        return format_of(document.format).table(document, self.settling)

    def settle(self, write_key: str, cause: Cause, evidence: Evidence = Evidence()) -> StoredCheckpoint | None:
        """Settle a write and return its document; None if there is none. The document may still be open if its owner is
        not the attempt that `evidence` is about.

        Raises `UnknownOutcomeError` if S3 prevents a verdict now; the document then stays open (or says unknown), and
        the next settler continues from there.
        """
        table: Table | None = None
        try:
            for _ in range(_ROUNDS_MAX):
                stored = self._checkpoints.read(write_key)  # S1
                if stored is None or not self._may_settle(stored.document, evidence):
                    return stored
                if not self.settling.may_go_on():
                    break
                table = table or self.table_of(stored.document)
                with table.held():
                    self._round(table, stored, cause, evidence)
        except StoreError as error:
            raise UnknownOutcomeError(f"{self._checkpoints.uri(write_key)} could not be settled: {error}") from error
        raise UnknownOutcomeError(
            f"{self._checkpoints.uri(write_key)} could not be settled in time; it stays open for the next settler"
        )

    @staticmethod
    def _may_settle(document: Checkpoint, evidence: Evidence) -> bool:
        is_meant = evidence.epoch in (None, document.epoch) and evidence.nonce in (None, document.owner)
        return document.status in OPEN and is_meant

    def _round(self, table: Table, stored: StoredCheckpoint, cause: Cause, evidence: Evidence) -> None:
        """Run S2 to S6 once. A lost compare-and-swap ends the round; the next round reads the document again."""
        checkpoint: HeldCheckpoint = stored
        for _ in range(_MOVES_MAX):
            move = self._next_move(table, checkpoint.document, cause, evidence)
            closing = {} if move.status in OPEN else {"settled_ms": self._clock(), "settled_by": cause.value}
            document = checkpoint.document.moved(
                move.status,
                reason=move.reason,
                undo_refused=move.undo_refused,
                incomplete=evidence.incomplete(move.status),
                **closing,
                **move.record,
            )
            won = self._checkpoints.replace(checkpoint, document)
            if won is None or move.status is Status.UNKNOWN:
                return
            if move.status not in OPEN:
                self._clean_up(document, evidence, table)
                return
            checkpoint = won

    def _next_move(self, table: Table, document: Checkpoint, cause: Cause, evidence: Evidence) -> Move:
        try:
            return table.next_move(document, Intent(cause.value, _undo(document, cause), evidence.nothing_sent))
        except UndecidableError as gap:
            if evidence.nothing_sent:  # whatever happened to the table, nothing in it is ours
                return Move(Status.ROLLED_BACK, f"{cause.value}: no commit was sent; {gap}")
            if document.status is Status.UNKNOWN:
                raise UnknownOutcomeError(
                    f"{self._checkpoints.uri(document.write_key)}: {gap}. Look at the table and set the verdict by hand"
                ) from gap
            return Move(Status.UNKNOWN, str(gap))

    def _clean_up(self, document: Checkpoint, evidence: Evidence, table: Table) -> None:
        if evidence.cleans_later:
            return
        # A failed clean-up does not change the verdict; a later settler repeats it.
        try:
            self.clean(
                document.write_key,
                ended_nonce=document.owner if evidence.requests_ended else None,
                unsent_nonce=document.owner if evidence.nothing_sent else None,
                table=table,
            )
        except Exception as error:  # noqa: BLE001 - a damaged object of the table may raise anything
            problem = shortened(str(error))
            _log.warning("%s is settled; cleaning up is left to a later settler: %s", document.write_key, problem)

    # -- clean-up: only under a terminal verdict, only files that are exactly ours -----------------------------------

    def clean(
        self,
        write_key: str,
        *,
        ended_nonce: str | None = None,
        unsent_nonce: str | None = None,
        left_nothing: bool = False,
        table: Table | None = None,
    ) -> int:
        """Delete the files that the ended attempts of a write have left; return their number. Under an open document
        delete nothing, except the files of the attempt `ended_nonce` if a later attempt has claimed the write since.

        An attempt counts as clean, and its marker is removed, once no request of it can still arrive: after its grace,
        or at once if it is `ended_nonce`, of which the caller knows that. `unsent_nonce`: the caller knows that this
        one commits no more. Any other may be alive, since a document may be false: the table fences it before its files
        go. `table`: the document's, if the caller has opened it: it need not read again what cannot change.
        `left_nothing`: the caller also knows that `ended_nonce` left no files, so there is no LIST for it. A job may
        run on after its success with a statement that needs its files, so files of a successful attempt stay until its
        grace is over.
        """
        removed = 0
        for _ in range(_ROUNDS_MAX):
            stored = self._checkpoints.read(write_key)
            if stored is None or stored.document.status in OPEN:
                return removed + (0 if stored is None else self._clean_superseded(stored.document, ended_nonce))
            # A frozen writer may have written more files after its attempt was cleaned, so it cleans its own again.
            dirty = [
                attempt for attempt in stored.document.attempts if not attempt.cleaned or attempt.nonce == ended_nonce
            ]
            if not dirty:
                return removed
            self._audit(stored.document)  # before the clean-up, so that a later settler repeats it after a kill
            looked_for = [
                attempt
                for attempt in dirty
                if (not left_nothing if attempt.nonce == ended_nonce else _may_be_removed(attempt, stored.server_date))
            ]
            count = self._remove(stored.document, looked_for, ended_nonce or unsent_nonce, table)
            removed += count
            nonces = {
                attempt.nonce
                for attempt in dirty
                if attempt.nonce == ended_nonce or past_grace(attempt, stored.server_date)
            }
            if not nonces and not count:
                return removed
            if self._checkpoints.replace(stored, stored.document.cleaned(nonces, count)) is not None:
                for nonce in sorted(nonces):
                    self._checkpoints.unmark(write_key, nonce)
                return removed
        return removed

    def clean_skipped(self, write_key: str, nonce: str) -> None:
        """Delete the files and the marker of a block that skipped its write and has ended. A task of a failed statement
        may outlive the block and leave one more file.
        """
        stored = self._checkpoints.read(write_key)
        if stored is not None:
            self.table_of(stored.document).remove_skipped(stored.document, nonce)
        self._checkpoints.unmark(write_key, nonce)

    def _clean_superseded(self, document: Checkpoint, ended_nonce: str | None) -> int:
        # This attempt has its verdict, or no other could have claimed. The document stays: its owner needs its ETag.
        attempts = [attempt for attempt in document.attempts[:-1] if attempt.nonce == ended_nonce]
        return self._remove(document, attempts, ended_nonce)

    def _audit(self, document: Checkpoint) -> None:
        if not self._audit_log:
            return
        if document.undo_refused is not None:
            self._checkpoints.audit(document, "undo_refused")
        elif document.status is Status.ROLLED_BACK:
            self._checkpoints.audit(document, "rolled_back")

    def _remove(
        self,
        document: Checkpoint,
        dirty: list[AttemptRecord],
        dead_nonce: str | None,
        table: Table | None = None,
    ) -> int:
        if not dirty:
            return 0
        last = max(attempt.epoch for attempt in dirty)
        earlier = (old for old in document.attempts if old.epoch < last and old.claimed and old not in dirty)
        table = table or self.table_of(document)
        return table.remove_leftovers(document, tuple(dirty), tuple(earlier), dead_nonce=dead_nonce)


def _undo(document: Checkpoint, cause: Cause) -> bool:
    """Return whether a commit of the write should be undone, if the table leaves a choice."""
    return cause is Cause.EXCEPTION or document.commit_point is CommitPoint.SUCCESS


def _may_be_removed(attempt: AttemptRecord, now: datetime) -> bool:
    return attempt.settled_by != Cause.SUCCESS.value or past_grace(attempt, now)
