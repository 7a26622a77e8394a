"""The supervisor of a job's guarded writes: it renews their leases while the job lives, and settles them after that.

The job names each write in its journal before it puts anything of it on S3.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from safewriter.deadline import epoch_ms
from safewriter.errors import SafeWriterError, UnknownOutcomeError
from safewriter.objects.s3 import open_store, table_store
from safewriter.objects.store import StoreError
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import OPEN, Status
from safewriter.settle.recovery import Cause, Evidence, Recovery

if TYPE_CHECKING:
    from collections.abc import Mapping

    from safewriter.deadline import Clock
    from safewriter.record.checkpoints import StoredCheckpoint
    from safewriter.record.document import Checkpoint
    from safewriter.record.journal import Entry, Event, Journal
    from safewriter.settings import Settings

__all__ = ["OpenWrites", "Supervision", "WriteReport"]

_log = logging.getLogger(__name__)
_ROUNDS_MAX: Final = 20
_TEXTS: Final = ("writeKey", "nonce", "table", "format", "checkpoint")


@dataclass(frozen=True, slots=True)
class WriteReport:
    """The verdict on one write of a job. `status` IN_PROGRESS: another attempt owns the write.

    `run_id` is that of the attempt which the verdict is about.
    """

    table: str
    format: str
    step: str | None
    status: Status
    version: int | None
    rows: int | None
    bytes: int | None
    reason: str | None
    undo_refused: str | None
    checkpoint: str
    run_id: str | None = None
    incomplete: str | None = None
    """Why rows of the block are missing from a committed write, or beside a rolled-back one."""


@dataclass(frozen=True, slots=True)
class _Opened:
    write_key: str
    nonce: str
    table: str
    format: str
    step: str | None
    checkpoint: str


class OpenWrites:
    """The open blocks of a child, from its journal. For use from one thread."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._count = 0
        self._by_nonce: dict[str, _Opened] = {}

    def now(self) -> tuple[_Opened, ...]:
        """Return the open blocks in the order of opening."""
        fresh = self._journal.entries(since=self._count)
        self._count += len(fresh)
        for entry in fresh:
            self._by_nonce.update((opened.nonce, opened) for opened in _opened((entry,)))
            if entry.event == "write_closed":
                self._by_nonce.pop(_nonce(entry), None)
        return tuple(self._by_nonce.values())

    def tables(self) -> tuple[str, ...]:
        """Return the tables of the open blocks, each once."""
        return tuple(dict.fromkeys(opened.table for opened in self.now()))


class Supervision:
    """The guarded writes of one child process, as its journal names them. `spark_settings`: those of its session."""

    def __init__(
        self,
        journal: Journal,
        settings: Settings,
        *,
        clock: Clock = epoch_ms,
        spark_settings: Mapping[str, str] | None = None,
    ) -> None:
        self._journal = journal
        self._open = OpenWrites(journal)
        self._settings = settings
        self._clock = clock
        self._spark_settings = spark_settings
        self._checkpoints = Checkpoints(open_store(settings.checkpoint_bucket))

    def renew_leases(self) -> None:
        """Renew the lease of every open write. Never raises."""
        for opened in self._open.now():
            try:
                self._checkpoints.renew_lease(opened.write_key, opened.nonce)
            except StoreError as error:
                _log.warning("lease of %s: %s", opened.write_key, error)

    def settle(self, *, budget_ms: int) -> tuple[WriteReport, ...]:
        """Settle every write that the journal names; call it only when no process of the child runs any more.

        A write that cannot be settled within the budget is reported as unknown, never as anything else.
        """
        until_ms = self._clock() + budget_ms
        recovery = Recovery(
            self._checkpoints,
            table_store,
            clock=self._clock,
            audit_log=self._settings.audit_log,
            may_go_on=lambda: self._clock() < until_ms,
            spark_settings=self._spark_settings,
        )
        entries = self._journal.entries()
        dead = {opened.nonce for opened in _opened(entries)}
        sent = {_nonce(entry) for entry in entries if entry.event == "commit_passed"}
        unsent = dead - sent if self._journal.is_whole() else set()
        wrong = _Wrong.of(entries)
        last = {opened.write_key: opened for opened in _opened(entries, "write_opened", "not_entered")}
        doubtful = {opened.write_key for opened in _opened(entries) if opened.nonce not in unsent}
        return tuple(
            wrong.judged(
                self._settled(recovery, opened, dead, unsent, wrong, may_have_sent=opened.write_key in doubtful),
                opened,
            )
            for opened in last.values()
        )

    def doubt(self) -> str | None:
        """Return why the child may have made writes that the journal does not name; None if it names them all."""
        return self._journal.doubt()

    def _settled(
        self,
        recovery: Recovery,
        opened: _Opened,
        dead: set[str],
        unsent: set[str],
        wrong: _Wrong,
        *,
        may_have_sent: bool,
    ) -> WriteReport:
        """Settle a write if its owner is one of the child's attempts (`dead`). `unsent`: attempts that sent no commit.

        `may_have_sent`: any of the child's attempts at this write may have sent one.
        """
        try:
            stored = self._checkpoints.read(opened.write_key)
            if stored is None:
                return wrong.without_document(opened, may_have_sent=may_have_sent)
            owner = stored.document.owner
            if stored.document.status in OPEN and owner in dead:
                evidence = wrong.evidence(stored.document.epoch, owner, nothing_sent=owner in unsent)
                stored = recovery.settle(opened.write_key, Cause.KILLED, evidence)
                if stored is None:
                    return _report(opened, Status.UNKNOWN, f"{opened.checkpoint} disappeared while it was settled")
            document = stored.document
            if document.status in OPEN:
                return _report(opened, Status.IN_PROGRESS, f"another attempt ({document.owner}) owns the write")
            return _verdict(opened, self._note_incomplete(stored, wrong))
        except SafeWriterError as error:
            return _report(opened, Status.UNKNOWN, str(error))

    def _note_incomplete(self, stored: StoredCheckpoint, wrong: _Wrong) -> Checkpoint:
        """Record in a settled document what was refused after the block's end: a retry would silently skip the write.

        Raises `StoreError` or `UnknownOutcomeError` if it could not be recorded.
        """
        settled = stored.document
        why = wrong.evidence(settled.epoch, settled.owner, nothing_sent=False).incomplete(settled.status)
        for _ in range(_ROUNDS_MAX):
            document = stored.document
            if why is None or document.incomplete is not None:
                return document
            moved = document.moved(document.status, incomplete=why)
            if self._checkpoints.replace(stored, moved) is not None:
                return moved
            again = self._checkpoints.read(settled.write_key)  # changed by a clean-up, or a retry that skips the write
            if again is None or again.document.owner != settled.owner:
                break
            stored = again
        where = self._checkpoints.uri(settled.write_key)
        raise UnknownOutcomeError(f"{where} does not say that its write is not whole: {why}")


@dataclass(frozen=True, slots=True)
class _Wrong:
    """Problems of attempts, by nonce: why the first statement was refused, what was written past the block, type and
    text of the error if the block was not entered; and which attempts skipped their write.
    """

    refused: Mapping[str, str]
    strays: Mapping[str, str]
    not_entered: Mapping[str, tuple[str, str]]
    skipped: frozenset[str]

    @classmethod
    def of(cls, entries: tuple[Entry, ...]) -> _Wrong:
        def first(event: Event) -> dict[str, str]:
            return {_nonce(entry): str(entry.fields.get("reason")) for entry in entries[::-1] if entry.event == event}

        refused = [entry for entry in entries if entry.event == "not_entered"]
        return cls(
            first("refused"),
            first("stray"),
            {_nonce(entry): (str(entry.fields.get("type")), str(entry.fields.get("reason"))) for entry in refused},
            frozenset(_nonce(entry) for entry in entries if entry.event == "write_skipped"),
        )

    def judged(self, report: WriteReport, last: _Opened) -> WriteReport:
        """Return the report on a write; `last` is its last block.

        If that block was not entered, its rows are missing, even if an earlier block of its name is committed.
        """
        if last.nonce not in self.not_entered or report.status is not Status.COMMITTED or report.incomplete is not None:
            return report
        return replace(report, incomplete=self._why(last))

    def _why(self, opened: _Opened) -> str:
        kind, reason = self.not_entered[opened.nonce]
        return f"the block was not entered ({kind}: {reason})"

    def without_document(self, opened: _Opened, *, may_have_sent: bool) -> WriteReport:
        """Report on a write without a document. Its absence proves nothing: it may have been deleted.

        `may_have_sent`: an attempt of the job may have sent a commit.
        """
        if may_have_sent:
            return _report(opened, Status.UNKNOWN, f"a commit may have been sent, but {opened.checkpoint} is gone")
        if opened.nonce in self.skipped:
            why = f"an earlier attempt has committed the write, but {opened.checkpoint} is gone"
            return _report(opened, Status.UNKNOWN, why)
        kind, reason = self.not_entered.get(opened.nonce, ("", ""))
        if kind == UnknownOutcomeError.__name__:
            return _report(opened, Status.UNKNOWN, reason)
        why = self._why(opened) if kind else "the attempt ended before it had claimed the write"
        return _report(opened, Status.ROLLED_BACK, why)

    def evidence(self, epoch: int, nonce: str, *, nothing_sent: bool) -> Evidence:
        """Return the supervisor's evidence about an attempt."""
        refused = self.refused.get(nonce)
        lost = None if refused is None else f"a statement of the block was refused ({refused})"
        return Evidence(epoch, nonce, nothing_sent=nothing_sent, lost=lost, strays=self.strays.get(nonce))


def _opened(entries: tuple[Entry, ...], *events: Event) -> tuple[_Opened, ...]:
    """Return the writes of `write_opened` entries, or of other events; skip lines that the guard has not written."""
    return tuple(
        _Opened(
            write_key=entry.fields["writeKey"],
            nonce=entry.fields["nonce"],
            table=entry.fields["table"],
            format=entry.fields["format"],
            step=entry.fields["step"],
            checkpoint=entry.fields["checkpoint"],
        )
        for entry in entries
        if entry.event in (events or ("write_opened",))
        and all(isinstance(entry.fields.get(name), str) for name in _TEXTS)
        and isinstance(entry.fields.get("step"), str | None)
    )


def _nonce(entry: Entry) -> str:
    return str(entry.fields.get("nonce"))


def _report(opened: _Opened, status: Status, reason: str) -> WriteReport:
    return WriteReport(
        opened.table, opened.format, opened.step, status, None, None, None, reason, None, opened.checkpoint
    )


def _verdict(opened: _Opened, document: Checkpoint) -> WriteReport:
    attempt = document.attempt
    return WriteReport(
        table=opened.table,
        format=opened.format,
        step=opened.step,
        status=document.status,
        version=attempt.commit_version,
        rows=attempt.rows,
        bytes=attempt.bytes,
        reason=document.reason,
        undo_refused=document.undo_refused,
        checkpoint=opened.checkpoint,
        run_id=attempt.run_id,
        incomplete=document.incomplete,
    )
