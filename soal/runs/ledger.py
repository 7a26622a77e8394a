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
from safewriter.objects import ListedObject
from safewriter.objects.store import TooLarge
from safewriter.record.announcements import announcements
from safewriter.record.checkpoints import Checkpoints, StoredCheckpoint
from safewriter.record.document import OPEN
from soal.runs.cost import Attempt
from soal.runs.run import ANNOUNCED, UNREAD, announced_write, in_order, run_of_record, run_of_writes, write_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from safewriter.deadline import Clock
    from safewriter.objects import ObjectStore
    from soal.runs.run import RunView, WriteView

_T = TypeVar("_T")
_PARALLEL: Final = 16
_WRITES_PER_RUN: Final = 4
_RESULT_MAX_BYTES: Final = 8 << 20
"""A result has some 500 bytes for each of its writes."""
_UNREAD_MAX: Final = 20
DOCUMENTS: Final = "checkpoints/"
MAY_BE_OF_RUN: Final = "(or a marker of its write) cannot be read; it may be a write of this run"
"""What to remark on what `Ledger.writes` could not read."""


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
        self.clock = clock
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

    def run(self, run_key: str) -> tuple[RunView | None, list[str]]:
        """Return one run with all its writes, or None if it is unknown; and what `writes` could not read.

        Raises `UnreadableRecordError` if the run's record cannot be read.
        """
        record = self.records.read(run_key)
        writes, unread = self.writes(run_key)
        views = self._grouped([] if record is None else [record], writes)
        return views[0] if views else None, unread

    def writes(self, run_key: str) -> tuple[tuple[WriteView, ...], list[str]]:
        """Return the writes of a run, also if its record cannot be read, and the URIs of the unreadable documents that
        are, or may be, the run's. Reads every document, and the markers of writes without a readable one.
        """
        # The markers are listed first: who removes one has put a document before.
        promised = (ListedObject(_document(one.write_key), 0, one.since) for one in self.checkpoints.marked())
        objects = {entry.key: entry for entry in (*promised, *self.store.list(DOCUMENTS))}
        damaged: list[str] = []

        def view(listed: ListedObject) -> WriteView | None:
            try:
                found = self._view(listed) or self._announced(listed) or self._view(listed)
            except UnreadableCheckpointError:
                found = self._announced(listed, status=UNREAD)
                if found is None:
                    raise
                if found.run_key == run_key:
                    damaged.append(self.store.uri(listed.key))
            return found if found is not None and found.run_key == run_key else None

        views, unread = self._read(objects.values(), view)
        return in_order(views), sorted((*unread, *damaged))

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
        return self.checkpoints.read(_write_key(listed))

    def _view(self, listed: ListedObject) -> WriteView | None:
        """Return the view of a listed document: thousands of documents would not fit into the memory."""
        stored = self.read_document(listed)
        return None if stored is None else self.write(stored)

    def write(self, stored: StoredCheckpoint) -> WriteView:
        """Return the view of a document; for an open write with its owner's signs of life."""
        sighting = self.checkpoints.sighting(stored) if stored.document.status in OPEN else None
        return write_of(stored.document, sighting, self.checkpoints.uri(stored.document.write_key))

    def _announced(self, listed: ListedObject, *, status: str = ANNOUNCED) -> WriteView | None:
        """Return the view of a write by its markers; None if it has none.

        Raises `UnreadableCheckpointError` if none of them can be read.
        """
        found = announcements(self.checkpoints, _write_key(listed), self.clock)
        marker = found.youngest
        if marker is None:
            if found.problem is not None:
                raise found.problem
            return None
        return announced_write(found, marker, status, self.store.uri(listed.key))

    @staticmethod
    def _grouped(records: Iterable[StoredRun], writes: Iterable[WriteView]) -> list[RunView]:
        by_run: dict[str, list[WriteView]] = {}
        for write in writes:
            by_run.setdefault(write.run_key, []).append(write)
        runs = [run_of_record(stored, by_run.pop(stored.record.run_key, [])) for stored in records]
        runs += [run_of_writes(run_key, writes) for run_key, writes in by_run.items()]
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


def remarks(unread: Sequence[str], what: str) -> Iterator[str]:
    """Say what is the matter with unreadable documents: name the first of them, and count the others."""
    yield from (f"{uri} {what}" for uri in unread[:_UNREAD_MAX])
    if (rest := len(unread) - _UNREAD_MAX) > 0:
        yield f"the same is true of {rest} more documents"


def _document(write_key: str) -> str:
    return f"{DOCUMENTS}{write_key}.json"


def _write_key(listed: ListedObject) -> str:
    return listed.key.removeprefix(DOCUMENTS).removesuffix(".json")


def _newest(objects: Iterable[ListedObject]) -> list[ListedObject]:
    return sorted(objects, key=lambda entry: (entry.last_modified, entry.key), reverse=True)
