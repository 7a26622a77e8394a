"""Runs and their writes, read from the checkpoint bucket.

A run has a record if a handler ran it; a job on a cluster has only the documents of its writes.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import ValidationError

from handler.runs.store import RESULTS, Runs, StoredRun, UnreadableRecordError, result_key
from safewriter.errors import UnreadableCheckpointError
from safewriter.objects.store import TooLarge
from safewriter.record.checkpoints import Checkpoints, StoredCheckpoint
from safewriter.record.document import OPEN
from safewriter.record.liveness import is_over
from soal.runs.cost import Attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from safewriter.deadline import Clock
    from safewriter.objects import ListedObject, ObjectStore
    from safewriter.record.liveness import Sighting

_T = TypeVar("_T")
_PARALLEL: Final = 16
_WRITES_PER_RUN: Final = 4
_RUNNING: Final = "RUNNING"
_RESULT_MAX_BYTES: Final = 8 << 20
"""A result has some 500 bytes for each of its writes."""
DOCUMENTS: Final = "checkpoints/"


@dataclass(frozen=True, slots=True)
class WriteView:
    """One write. `life` is alive or dead while the write is open, else None; `why` is the evidence. Times: epoch ms."""

    write_key: str
    run_key: str
    table: str
    format: str
    step: str | None
    status: str
    commit_point: str
    attempts: int
    version: int | None
    rows: int | None
    bytes: int | None
    reason: str | None
    undo_refused: str | None
    incomplete: str | None
    """Why the write is not whole: a retry fails, and only a person can tell what is missing."""
    settled_by: str | None
    settled_ms: int | None
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


@dataclass(frozen=True, slots=True)
class Listing:
    """The newest runs first. `unread`: the URIs of unreadable documents (damaged, or of another version). `is_whole`:
    no older run is left out.
    """

    runs: tuple[RunView, ...]
    unread: tuple[str, ...]
    is_whole: bool


class Ledger:
    """Reads the checkpoint bucket of one deployment. The caller needs the right to list it."""

    def __init__(self, store: ObjectStore, clock: Clock) -> None:
        self.store = store
        self.records = Runs(store, clock)
        self.checkpoints = Checkpoints(store)

    def runs(self, limit: int, states: frozenset[str] = frozenset()) -> Listing:
        """Return the newest `limit` runs, or all if `limit` is 0; with `states` only those that have one of them.

        Without `states` the limit bounds the documents read: with it, the run may be older than any number of others.
        """
        most = None if states or not limit else limit
        listed, documents = _newest(self.records.listed()), _newest(self.store.list(DOCUMENTS))
        looked_at = documents if most is None else documents[: most * _WRITES_PER_RUN]
        records, unread_records = self._read(listed[:most], self.records.read_listed)
        writes, unread = self._read(looked_at, self._view)
        views = [run for run in self._grouped(records, writes) if run.has(states)]
        runs = views[: limit or None]
        is_whole = (len(listed[:most]), len(looked_at), len(runs)) == (len(listed), len(documents), len(views))
        return Listing(tuple(runs), (*unread, *unread_records), is_whole)

    def run(self, run_key: str) -> RunView | None:
        """Return one run with all its writes, or None if it is unknown. Reads every document.

        Raises `UnreadableRecordError` if the run's record cannot be read.
        """
        record = self.records.read(run_key)
        views = self._grouped([] if record is None else [record], self.writes(run_key))
        return views[0] if views else None

    def writes(self, run_key: str) -> tuple[WriteView, ...]:
        """Return the writes of a run, also if its record cannot be read. Reads every document."""

        def view(listed: ListedObject) -> WriteView | None:
            found = self._view(listed)
            return found if found is not None and found.run_key == run_key else None

        return _in_order(self._read(_newest(self.store.list(DOCUMENTS)), view)[0])

    def last_attempt(self, run: RunView) -> Attempt | None:
        """Return the result of a run's last attempt; None if it left none that can be read."""
        if run.run_id is None:
            return None
        try:
            return self._attempt(result_key(run.run_id))
        except (TooLarge, ValidationError):
            return None

    def attempts(self, since: datetime) -> tuple[list[Attempt], list[str]]:
        """Return the attempts whose results the store has received since then, and the URIs of unreadable results."""
        listed = (entry for entry in self.store.list(RESULTS) if entry.last_modified >= since)
        return self._read(listed, lambda entry: self._attempt(entry.key))

    def _attempt(self, key: str) -> Attempt | None:
        stored = self.store.get(key, max_bytes=_RESULT_MAX_BYTES)
        return None if stored is None else Attempt.model_validate_json(stored.body)

    def read_document(self, listed: ListedObject) -> StoredCheckpoint | None:
        """Return a listed document, or None if it is gone."""
        return self.checkpoints.read(listed.key.removeprefix(DOCUMENTS).removesuffix(".json"))

    def _view(self, listed: ListedObject) -> WriteView | None:
        """Return the view of a listed document: thousands of documents would not fit into the memory."""
        stored = self.read_document(listed)
        return None if stored is None else self.write(stored)

    def write(self, stored: StoredCheckpoint) -> WriteView:
        """Return the view of a document; for an open write with its owner's signs of life."""
        document = stored.document
        attempt = document.attempt
        sighting = self.checkpoints.sighting(stored) if document.status in OPEN else None
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
            why=None if sighting is None else _why(sighting),
            checkpoint=self.checkpoints.uri(document.write_key),
        )

    @staticmethod
    def _grouped(records: Iterable[StoredRun], writes: Iterable[WriteView]) -> list[RunView]:
        by_run: dict[str, list[WriteView]] = {}
        for write in writes:
            by_run.setdefault(write.run_key, []).append(write)
        runs = [_of_record(stored, by_run.pop(stored.record.run_key, [])) for stored in records]
        runs += [_of_writes(run_key, writes) for run_key, writes in by_run.items()]
        return sorted(runs, key=lambda run: (run.started_ms, run.run_key), reverse=True)

    def _read(
        self, objects: Iterable[ListedObject], read: Callable[[ListedObject], _T | None]
    ) -> tuple[list[_T], list[str]]:
        """Read objects in parallel; return their contents, and the URIs of the unreadable ones."""
        unread = []

        def read_one(entry: ListedObject) -> _T | None:
            try:
                return read(entry)
            except (TooLarge, UnreadableCheckpointError, UnreadableRecordError, ValidationError):
                unread.append(self.store.uri(entry.key))
                return None

        with ThreadPoolExecutor(_PARALLEL) as pool:
            good = [answer for answer in pool.map(read_one, objects) if answer is not None]
        return good, sorted(unread)


def _newest(objects: Iterable[ListedObject]) -> list[ListedObject]:
    return sorted(objects, key=lambda entry: (entry.last_modified, entry.key), reverse=True)


def _of_record(stored: StoredRun, writes: list[WriteView]) -> RunView:
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
        why=_why(stored.sighting) if is_running else None,
        result_uri=record.result_uri,
        writes=_in_order(writes),
        execution=record.execution,
        reason=record.reason,
    )


def _of_writes(run_key: str, writes: list[WriteView]) -> RunView:
    open_ones = [write for write in writes if write.life is not None]
    first = next((write for write in open_ones if write.life == "alive"), open_ones[0] if open_ones else None)
    return RunView(
        run_key=run_key,
        started_ms=max(write.started_ms for write in writes),
        life=None if first is None else first.life,
        why=None if first is None else first.why,
        writes=_in_order(writes),
    )


def _in_order(writes: list[WriteView]) -> tuple[WriteView, ...]:
    return tuple(sorted(writes, key=lambda write: (write.started_ms, write.table, write.step or "")))


def _life(sighting: Sighting) -> str:
    return "dead" if sighting.is_dead else "alive"


def _why(sighting: Sighting) -> str:
    silent_s = max(0, round((sighting.now - sighting.last_sign).total_seconds()))
    if is_over(sighting.end_ms, sighting.now):
        return "its deadline and the grace after it are over"
    return f"no sign of life for {silent_s} s" if sighting.is_dead else f"a sign of life {silent_s} s ago"
