"""Converts a state of the model to a real document and metadata, and the code's result back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from safewriter.errors import UnknownOutcomeError
from safewriter.identity import Attempt, Run, Write
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import AttemptRecord, Checkpoint
from safewriter.record.liveness import GRACE_MS
from safewriter.settle.recovery import Evidence, Recovery
from safewriter.tables.iceberg.metadata import LiveTable
from safewriter.tables.iceberg.name import TableName
from safewriter.tables.table import UndecidableError
from tests.support.memory_store import MemoryObjectStore

if TYPE_CHECKING:
    from safewriter.record.document import CommitPoint
    from safewriter.tables.iceberg.metadata import FenceTag
    from tests.model.iceberg.table import Snapshot
    from tests.model.state import Claim, Doc, Settling, State

__all__ = ["Materialised"]

_NAME: Final = TableName.parse("lite.db.t")
_ID: Final = "5b2f0c3e-0000-4000-8000-000000000001"
_NOW_MS: Final = 1_800_000_000_000
_AGES_MS: Final = (0, 561_600_000, 648_000_000)  # nothing, six days and a half, seven and a half


class OnePointer:
    """A catalog of one table, which may be missing. `late`: marks that land just before the next fence."""

    def __init__(self, metadata: dict[str, Any] | None) -> None:
        self.metadata = metadata
        self.late: dict[str, str] = {}

    def read(self) -> LiveTable | None:
        return None if self.metadata is None else LiveTable(self.metadata, None)

    def commit(self, held: LiveTable, fence: FenceTag) -> bool:
        if fence.name in held.metadata["refs"]:
            return False
        refs = {**held.metadata["refs"], fence.name: fence.tag}
        self.metadata = {**held.metadata, "refs": refs, "properties": {**held.metadata["properties"], **self.late}}
        return True


class Materialised:
    """The bucket and the catalog as the code would leave them in a state of the model."""

    def __init__(self, state: State, commit_point: CommitPoint) -> None:
        assert state.doc is not None
        self._state, self._commit_point, self._claims = state, commit_point, state.doc.claims
        bucket = MemoryObjectStore(lambda: datetime.fromtimestamp(_NOW_MS / 1000, UTC), "checkpoints")
        self._checkpoints = Checkpoints(bucket)
        self._recovery = Recovery(self._checkpoints, lambda _: bucket, clock=lambda: _NOW_MS)
        self._key = Write(Run("run", "run-id", None, "job"), _NAME, "iceberg", None).key
        bucket.create(f"checkpoints/{self._key}.json", self._document(state.doc).to_bytes())
        self._names = {claim.attempt: self._record(claim).prefix.rstrip("-") for claim in self._claims}
        self._before = self._metadata()
        self.pointer = OnePointer(self._before if state.table.there else None)

    # -- from the model ------------------------------------------------------------------------------------------------

    def _document(self, doc: Doc) -> Checkpoint:
        return Checkpoint(
            run_key="run",
            write_key=self._key,
            fingerprint="",
            table=str(_NAME),
            format="iceberg",
            step=None,
            commit_point=self._commit_point,
            status=doc.status,
            epoch=doc.epoch,
            owner=self._record(doc.claims[-1]).nonce,
            attempts=tuple(self._record(claim) for claim in doc.claims),
        )

    def _record(self, claim: Claim) -> AttemptRecord:
        nonce, epoch = f"{claim.attempt + 1:016x}", 1 + self._claims.index(claim)
        over, doc = self._state.clocks[claim.attempt] == 2, self._state.doc
        named = doc is not None and doc.named and epoch == doc.epoch
        return AttemptRecord(
            epoch=epoch,
            nonce=nonce,
            run_id="run-id",
            request_id=None,
            prefix=Attempt(nonce).file_prefix(self._key, epoch),
            deadline_ms=_NOW_MS + (-GRACE_MS - 1000 if over else 600_000),
            started_ms=_NOW_MS - (_AGES_MS[self._state.table.age] if claim.attempt == 0 else 0),
            version_before=1,
            table_id=_ID,
            commit_version=1 if named else None,
            cleaned=claim.cleaned,
        )

    def _metadata(self) -> dict[str, Any]:
        table = self._state.table
        fences = {self._names[name]: {"snapshot-id": 1, "type": "tag"} for name in table.fences}
        known = [(number, one) for number, one in enumerate(table.snapshots, 1) if not one.gone]
        return {
            "format-version": 2,
            "table-uuid": _ID,
            "location": "s3://lake/t",
            "properties": {key: value for name, _ in table.marks for key, value in self.mark(name).items()},
            "snapshots": [self._snapshot(number, one) for number, one in known],
            "refs": {"main": {"snapshot-id": table.main, "type": "branch"}, **fences},
        }

    def _snapshot(self, number: int, one: Snapshot) -> dict[str, Any]:
        name = self._names.get(one.attempt)
        summary = {} if name is None else {"summary": {"operation": "append", "safewriter.attempt": name}}
        return {"snapshot-id": number, "timestamp-ms": _NOW_MS, **summary}

    def mark(self, attempt: int) -> dict[str, str]:
        """Return the mark of an attempt's publication."""
        return {f"safewriter.{self._names[attempt]}": f"1 2 3 {_NOW_MS}"}

    # -- running the code ----------------------------------------------------------------------------------------------

    def settled(self, settling: Settling) -> bool:
        """Let the code settle; return False if the outcome is unknown."""
        evidence = Evidence(
            settling.epoch or None, nothing_sent=settling.nothing_sent, requests_ended=settling.quiet >= 0
        )
        try:
            self._recovery.settle(self._key, settling.cause, evidence)
        except UnknownOutcomeError:
            return False
        return True

    def traced(self) -> int | None:
        """Return the epoch that the table proves without the document, 0 for none, None if it does not decide."""
        document = self._stored()
        since_ms = min(attempt.started_ms for attempt in document.attempts)
        try:
            trace = self._recovery.table_of(document).trace(self._key, since_ms)
        except UndecidableError:
            return None
        return 0 if trace is None or trace.landed is None else trace.epoch

    # -- back to the model ---------------------------------------------------------------------------------------------

    def fences(self) -> frozenset[int]:
        """Return the fenced attempts; assert that nothing else of the table has changed."""
        refs = self._before["refs"] if self.pointer.metadata is None else self.pointer.metadata["refs"]
        assert self.pointer.metadata in (None, {**self._before, "refs": refs})
        assert refs["main"] == self._before["refs"]["main"]
        return frozenset(attempt for attempt, name in self._names.items() if name in refs)

    def doc(self) -> tuple[str, int, bool, tuple[bool, ...]]:
        """Return status, epoch, whether a commit is named, and each attempt's `cleaned`."""
        document = self._stored()
        clean = tuple(attempt.cleaned for attempt in document.attempts)
        return document.status.value, document.epoch, document.attempt.commit_version is not None, clean

    def _stored(self) -> Checkpoint:
        stored = self._checkpoints.read(self._key)
        assert stored is not None
        return stored.document
