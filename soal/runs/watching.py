"""Find changes between two reads of the checkpoint bucket: the monitor of the paper that docs/experiment.md names (its
section VII-D).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from handler.runs.store import UnreadableRecordError
from safewriter.errors import UnreadableCheckpointError
from soal.runs.ledger import DOCUMENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from safewriter.objects import ListedObject
    from soal.runs.ledger import Ledger

# S3 dates have whole seconds: an object that changes twice in a second must be read again.
_OVERLAP: Final = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class Event:
    """A new state of a run or a write. `at_ms`: its start while it is open, else its end."""

    kind: str
    state: str
    at_ms: int
    run_key: str
    attempt: int
    table: str | None
    step: str | None
    version: int | None
    reason: str | None
    undo_refused: str | None
    uri: str


@dataclass(slots=True)
class Watcher:
    """Remembers the last states. Each read costs one listing per folder, and one GET per changed object."""

    ledger: Ledger
    _seen: dict[str, tuple[str, int]] = field(default_factory=dict)
    _newest: dict[str, datetime] = field(default_factory=dict)

    def look(self) -> tuple[Event, ...]:
        """Return the changes since the last call; the first call returns every run and write."""
        runs = self._changes("runs", self.ledger.records.listed(), self._run)
        writes = self._changes("writes", self.ledger.store.list(DOCUMENTS), self._write)
        return tuple(sorted((*runs, *writes), key=lambda event: (event.at_ms, event.uri)))

    def follow(
        self,
        *,
        past: bool,
        every_s: float,
        for_s: float | None,
        sleep: Callable[[float], None] = time.sleep,
        now_s: Callable[[], float] = time.monotonic,
    ) -> Iterator[Event]:
        """Yield changes for `for_s` seconds, or for ever if None. `past`: start with the existing runs and writes."""
        until_s = None if for_s is None else now_s() + for_s
        shows = past
        while True:
            events = self.look()
            yield from events if shows else ()
            shows = True
            pause_s = every_s if until_s is None else min(every_s, until_s - now_s())
            if pause_s <= 0:
                return
            sleep(pause_s)

    def _changes(
        self, kind: str, objects: Iterable[ListedObject], read: Callable[[ListedObject], Event | None]
    ) -> Iterator[Event]:
        entries = list(objects)
        since = self._newest.get(kind)
        for entry in entries:
            if since is not None and entry.last_modified < since - _OVERLAP:
                continue
            try:
                event = read(entry)
            except (UnreadableCheckpointError, UnreadableRecordError):
                continue  # damaged or of another version; `runs list` names it
            if event is not None and self._seen.get(entry.key) != (event.state, event.attempt):
                self._seen[entry.key] = (event.state, event.attempt)
                yield event
        if entries:
            self._newest[kind] = max(entry.last_modified for entry in entries)

    def _run(self, listed: ListedObject) -> Event | None:
        stored = self.ledger.records.read_listed(listed)
        if stored is None:
            return None
        record = stored.record
        return Event(
            kind="run",
            state=record.state,
            at_ms=record.started_ms if record.ended_ms is None else record.ended_ms,
            run_key=record.run_key,
            attempt=record.attempt,
            table=None,
            step=None,
            version=None,
            reason=record.reason,
            undo_refused=None,
            uri=record.result_uri,
        )

    def _write(self, listed: ListedObject) -> Event | None:
        stored = self.ledger.read_document(listed)
        if stored is None:
            return None
        document, attempt = stored.document, stored.document.attempt
        return Event(
            kind="write",
            state=document.status.value,
            at_ms=attempt.started_ms if attempt.settled_ms is None else attempt.settled_ms,
            run_key=document.run_key,
            attempt=document.epoch,
            table=document.table,
            step=document.step,
            version=attempt.commit_version,
            reason=document.reason,
            undo_refused=document.undo_refused,
            uri=self.ledger.checkpoints.uri(document.write_key),
        )
