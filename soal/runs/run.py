"""One run and its writes, as the commands show them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from safewriter.record.liveness import is_over

if TYPE_CHECKING:
    from handler.runs.store import StoredRun
    from safewriter.record.announcements import Announcements
    from safewriter.record.document import Checkpoint
    from safewriter.record.liveness import Sighting
    from safewriter.record.marker import Marker

ANNOUNCED: Final = "announced"
UNREAD: Final = "unread"
_RUNNING: Final = "RUNNING"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteView:
    """One write. `life` is alive or dead while the write is open, else None; `why` is the evidence. Times: epoch ms."""

    write_key: str
    run_key: str
    table: str
    format: str
    step: str | None
    status: str
    """The document's; of a write that only a marker tells of: announced if it has no document, unread if it has one."""
    commit_point: str
    attempts: int
    version: int | None = None
    rows: int | None = None
    bytes: int | None = None
    reason: str | None = None
    undo_refused: str | None = None
    incomplete: str | None = None
    """Why the write is not whole: a retry fails, and only a person can tell what is missing."""
    settled_by: str | None = None
    settled_ms: int | None = None
    started_ms: int
    life: str | None
    why: str | None
    checkpoint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """One run. Fields from the handler's record are None without a record; `attempt` numbers the last attempt."""

    run_key: str
    run_id: str | None = None
    name: str | None = None
    entry_point: str | None = None
    state: str | None = None
    attempt: int | None = None
    request_id: str | None = None
    started_ms: int
    ended_ms: int | None = None
    deadline_ms: int | None = None
    life: str | None
    why: str | None
    result_uri: str | None = None
    writes: tuple[WriteView, ...]
    execution: str | None = None
    """The ARN of the run's durable execution."""
    reason: str | None = None
    """Why the last attempt ended, and what to do: the start of its result's `stateDetails`."""

    def has(self, states: frozenset[str]) -> bool:
        """Return whether the run or one of its writes has one of the states (lower case); True without states."""
        own = {(self.state or "").lower(), self.life}
        for write in self.writes:
            own |= {write.status, "undo_refused" if write.undo_refused else None}
        return not states or not states.isdisjoint(own)


def write_of(document: Checkpoint, sighting: Sighting | None, uri: str) -> WriteView:
    """Return the view of a document at `uri`. `sighting`: of its owner, if the write is open."""
    attempt = document.attempt
    return WriteView(
        write_key=document.write_key,
        run_key=document.run_key,
        table=document.table,
        format=document.format,
        step=document.step,
        status=document.status.value,
        commit_point=document.commit_point.value,
        attempts=len(document.attempts) + document.attempts_dropped,
        version=attempt.commit_version,
        rows=attempt.rows,
        bytes=attempt.bytes,
        reason=document.reason,
        undo_refused=document.undo_refused,
        incomplete=document.incomplete,
        settled_by=attempt.settled_by,
        settled_ms=attempt.settled_ms,
        started_ms=attempt.started_ms,
        life=None if sighting is None else _life(sighting),
        why=None if sighting is None else why_of(sighting),
        checkpoint=uri,
    )


def announced_write(found: Announcements, marker: Marker, status: str, uri: str) -> WriteView:
    """Return the view of a write that only its markers tell of. `marker`: the youngest; `uri`: of its document."""
    lack = "no document" if status == ANNOUNCED else "no readable document"
    return WriteView(
        write_key=marker.write_key,
        run_key=marker.run_key,
        table=marker.table,
        format=marker.format,
        step=marker.step,
        status=status,
        commit_point=marker.commit_point.value,
        attempts=len(found.markers),
        reason=f"{lack}; see: soal recover --run {marker.run_key}",
        started_ms=marker.started_ms,
        life="dead" if found.living is None else "alive",
        why="its time is over" if found.living is None else "it may still be written",
        checkpoint=uri,
    )


def run_of_record(stored: StoredRun, writes: list[WriteView]) -> RunView:
    """Return a run that a handler has recorded."""
    record, is_running = stored.record, stored.record.state == _RUNNING
    return RunView(
        run_key=record.run_key,
        run_id=record.run_id,
        name=record.name,
        entry_point=record.entry_point,
        state=record.state,
        attempt=record.attempt,
        request_id=record.request_id,
        started_ms=record.started_ms,
        ended_ms=record.ended_ms,
        deadline_ms=record.deadline_ms,
        life=_life(stored.sighting) if is_running else None,
        why=why_of(stored.sighting) if is_running else None,
        result_uri=record.result_uri,
        writes=in_order(writes),
        execution=record.execution,
        reason=record.reason,
    )


def run_of_writes(run_key: str, writes: list[WriteView]) -> RunView:
    """Return a run that no handler has recorded. It lives if one of its writes does."""
    open_ones = [write for write in writes if write.life is not None]
    first = next((write for write in open_ones if write.life == "alive"), open_ones[0] if open_ones else None)
    return RunView(
        run_key=run_key,
        started_ms=max(write.started_ms for write in writes),
        life=None if first is None else first.life,
        why=None if first is None else first.why,
        writes=in_order(writes),
    )


def in_order(writes: list[WriteView]) -> tuple[WriteView, ...]:
    """Return the writes in the order of their begin."""
    return tuple(sorted(writes, key=lambda write: (write.started_ms, write.table, write.step or "")))


def _life(sighting: Sighting) -> str:
    return "dead" if sighting.is_dead else "alive"


def why_of(sighting: Sighting) -> str:
    """Return the evidence that an owner is alive or dead."""
    silent_s = max(0, round((sighting.now - sighting.last_sign).total_seconds()))
    if is_over(sighting.end_ms, sighting.now):
        return "its deadline and the grace after it are over"
    return f"no sign of life for {silent_s} s" if sighting.is_dead else f"a sign of life {silent_s} s ago"
