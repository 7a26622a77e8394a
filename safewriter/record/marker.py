"""The marker of an attempt: put before the attempt touches the document, removed when the attempt needs no more work.

It holds enough to settle the write of an attempt that has died before its claim.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from safewriter.bounds import checked, short, shortened
from safewriter.errors import UnknownVersionError, UnreadableCheckpointError
from safewriter.identity import Attempt, check_write_key
from safewriter.record.document import AttemptRecord, Checkpoint, CommitPoint, Status, read_record
from safewriter.tables.table import Trace

if TYPE_CHECKING:
    from safewriter.identity import Write

__all__ = ["Marker"]

_SCHEMA_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Marker:
    """One attempt, as announced. Times are epoch milliseconds; `deadline_ms` is None if it has none.

    `catalog`: the properties by which a settler reaches the table's catalog, without secrets.
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

    def document(
        self, status: Status, reason: str, settled_ms: int, settled_by: str, trace: Trace | None = None
    ) -> Checkpoint:
        """Return a settled document for a write that has none, made from this marker and the table's `trace`. A retry
        claims an epoch above the one that the table knows.
        """
        trace = trace or Trace(epoch=1)
        # Counts as clean: a settler could not tell the attempt's leftovers from files that the table needs.
        record = AttemptRecord(
            epoch=trace.epoch,
            nonce=self.nonce,
            run_id=self.run_id,
            request_id=self.request_id,
            prefix=Attempt(self.nonce).file_prefix(self.write_key, trace.epoch),
            deadline_ms=self.deadline_ms,
            started_ms=self.started_ms,
            version_before=trace.before,
            properties=trace.properties,
            catalog=self.catalog,
            settled_ms=settled_ms,
            settled_by=settled_by,
            cleaned=True,
            claimed=status is Status.COMMITTED,
            **({} if trace.landed is None else dataclasses.asdict(trace.landed)),
        )
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
            reason=shortened(f"{settled_by}: {reason}"),
        )

    def to_bytes(self) -> bytes:
        """Return the marker as JSON; raise `UnreadableCheckpointError` if `from_bytes` would refuse the result."""
        body = json.dumps({"schema_version": _SCHEMA_VERSION, **dataclasses.asdict(self)}).encode()
        try:
            self.from_bytes(body)
        except UnreadableCheckpointError as error:
            raise UnreadableCheckpointError(f"{self.write_key}: nothing was written, since {error}") from error
        return body

    @classmethod
    def from_bytes(cls, body: bytes) -> Marker:
        """Parse a marker; raise `UnreadableCheckpointError` if it is damaged or of an unknown schema version."""
        try:
            fields: dict[str, Any] = read_record(body)
            if fields["schema_version"] != _SCHEMA_VERSION:
                raise UnknownVersionError(
                    f"marker of schema version {short(fields['schema_version'])}; this code knows {_SCHEMA_VERSION}"
                )
            fields = {"catalog": {}, **fields}  # a marker of an earlier version has none
            known = {field.name: fields[field.name] for field in dataclasses.fields(cls)}
            marker = checked(cls(**{**known, "commit_point": CommitPoint(known["commit_point"])}))
            check_write_key(marker.write_key, marker.run_key, marker.table, marker.step)
            Attempt(marker.nonce).check_prefix(marker.prefix, marker.write_key, 1)
        except (ValueError, TypeError, KeyError) as error:
            raise UnreadableCheckpointError(f"not a marker: {error!r}") from error
        return marker
