"""The marker of an attempt: put before the attempt touches the document, removed when nothing of it is left to do.

It says enough of the write to close it for an attempt that has died before its claim.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from safewriter.errors import UnreadableCheckpointError
from safewriter.identity import Attempt
from safewriter.parsing import parsed
from safewriter.state import AttemptRecord, Checkpoint, CommitPoint, Status

if TYPE_CHECKING:
    from safewriter.identity import Write
    from safewriter.tables.table import Trace

__all__ = ["Marker"]

_SCHEMA_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Marker:
    """One attempt, as announced. Times are epoch milliseconds; `deadline_ms` is None if it has none.

    `catalog`: how a catalog that commits to the table is reached, without secrets.
    """

    run_key: str
    write_key: str
    fingerprint: str
    table: str
    format: str
    step: str | None
    commit_point: CommitPoint
    nonce: str
    run_id: str
    request_id: str | None
    prefix: str
    started_ms: int
    deadline_ms: int | None
    catalog: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, write: Write, attempt: Attempt, commit_point: CommitPoint, *, started_ms: int, deadline_ms: int | None
    ) -> Marker:
        """Describe an attempt that is about to claim."""
        return cls(
            run_key=write.run.key,
            write_key=write.key,
            fingerprint=write.fingerprint,
            table=str(write.table),
            format=write.format,
            step=write.step,
            commit_point=commit_point,
            nonce=attempt.nonce,
            run_id=write.run.id,
            request_id=write.run.request_id,
            prefix=attempt.file_prefix(write.key, 1),
            started_ms=started_ms,
            deadline_ms=deadline_ms,
        )

    def tombstone(self, settled_ms: int, settled_by: str, reason: str | None = None) -> Checkpoint:
        """Return the document of a write that was announced and has left nothing: a claim of this attempt now loses.

        A retry goes past it, as past any write that was rolled back.
        """
        reason = reason or "the attempt ended before it had claimed the write"
        record = self._record(1, -1, settled_ms, settled_by)
        return self._document(Status.ROLLED_BACK, dataclasses.replace(record, claimed=False), f"{settled_by}: {reason}")

    def found(self, trace: Trace, settled_ms: int, settled_by: str) -> Checkpoint:
        """Return the document of a write that has none, by what the table tells of it.

        What is in the table no more was fenced or taken back; a claim must go past the epoch of that.
        """
        record = self._record(trace.epoch, trace.before, settled_ms, settled_by)
        if trace.landed is None:
            reason = f"{settled_by}: nothing of it is in the table any more, and its document was gone"
            return self._document(Status.ROLLED_BACK, dataclasses.replace(record, claimed=False), reason)
        record = dataclasses.replace(record, **dataclasses.asdict(trace.landed))
        return self._document(Status.COMMITTED, record, f"{settled_by}: the table holds it, and its document was gone")

    def committed(self, settled_ms: int, settled_by: str, reason: str) -> Checkpoint:
        """Return the document of a write that has none and of which somebody knows that the table holds it."""
        record = self._record(1, -1, settled_ms, settled_by)
        return self._document(Status.COMMITTED, record, f"{settled_by}: {reason}")

    def _record(self, epoch: int, version_before: int, settled_ms: int, settled_by: str) -> AttemptRecord:
        # Counted as clean: what the attempt may have left cannot be told from what the table needs.
        return AttemptRecord(
            epoch=epoch,
            nonce=self.nonce,
            run_id=self.run_id,
            request_id=self.request_id,
            prefix=Attempt(self.nonce).file_prefix(self.write_key, epoch),
            deadline_ms=self.deadline_ms,
            started_ms=self.started_ms,
            version_before=version_before,
            catalog=self.catalog,
            settled_ms=settled_ms,
            settled_by=settled_by,
            cleaned=True,
        )

    def _document(self, status: Status, record: AttemptRecord, reason: str) -> Checkpoint:
        return Checkpoint(
            run_key=self.run_key,
            write_key=self.write_key,
            fingerprint=self.fingerprint,
            table=self.table,
            format=self.format,
            step=self.step,
            commit_point=self.commit_point,
            status=status,
            epoch=record.epoch,
            owner=self.nonce,
            attempts=(record,),
            reason=reason,
        )

    def to_bytes(self) -> bytes:
        """Return the marker as JSON."""
        return json.dumps({"schema_version": _SCHEMA_VERSION, **dataclasses.asdict(self)}).encode()

    @classmethod
    def from_bytes(cls, body: bytes) -> Marker:
        """Parse a marker; `UnreadableCheckpointError` if it is of a version that is not known here, or damaged."""
        try:
            found: dict[str, Any] = parsed(body)
            if found["schema_version"] != _SCHEMA_VERSION:
                raise UnreadableCheckpointError(
                    f"marker of schema version {found['schema_version']}; this code knows {_SCHEMA_VERSION}"
                )
            found = {"catalog": {}, **found}  # a marker of an earlier version has none
            known = {one.name: found[one.name] for one in dataclasses.fields(cls)}
            return cls(**{**known, "commit_point": CommitPoint(known["commit_point"])})
        except (ValueError, TypeError, KeyError) as error:
            raise UnreadableCheckpointError(f"not a marker: {error!r}") from error
