"""Settle open writes on an operator's command, with the same code as guard, supervisor and retry.

With `--dry-run` an `Overlay` replaces each store: it records the changes and makes none.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from rich.text import Text

from safewriter.objects import ListedObject, PreconditionFailed, StoredObject
from safewriter.objects.store import PAGE, TooLarge
from safewriter.record.checkpoints import Checkpoints
from safewriter.settle.one_write import Action, settle_one
from safewriter.settle.recovery import Cause, Recovery
from safewriter.settle.shares import THREADS, in_shares
from soal.console.document import document_of
from soal.console.view import View, columns, styled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.table import Table

    from safewriter.deadline import Clock
    from safewriter.objects import ObjectStore, Upload

_SHOWN_MAX: Final = 200
_ANNOUNCED: Final = "announced"
"""The status of a write with a marker and no document."""
_UNREAD: Final = "unread"
"""The status of a write with neither a readable document nor a readable marker."""


class Overlay:
    """An object store that reads from `below` and keeps changes in memory. `changes` lists the first 200 in order."""

    def __init__(self, below: ObjectStore, now: Callable[[], datetime]) -> None:
        self._below = below
        self._now = now
        self._objects: dict[str, StoredObject | None] = {}
        self._aborted: set[Upload] = set()
        self.changes: list[str] = []
        self.changes_more = 0

    def get(self, key: str, *, max_bytes: int | None = None) -> StoredObject | None:
        if key not in self._objects:
            return self._below.get(key, max_bytes=max_bytes)
        stored = self._objects[key]
        if stored is not None and max_bytes is not None and len(stored.body) > max_bytes:
            raise TooLarge(self.uri(key), len(stored.body), max_bytes, stored.etag)
        return stored

    def stream(self, key: str) -> Iterator[bytes] | None:
        if key not in self._objects:
            return self._below.stream(key)
        stored = self._objects[key]
        return None if stored is None else iter([stored.body])

    def create(self, key: str, body: bytes, *, tag: str = "") -> str:  # noqa: ARG002 - tags are not read
        if self.get(key) is not None:
            raise PreconditionFailed(self.uri(key))
        return self.put(key, body)

    def replace(self, key: str, body: bytes, *, etag: str, tag: str = "") -> str:  # noqa: ARG002 - as above
        stored = self.get(key)
        if stored is None or stored.etag != etag:
            raise PreconditionFailed(self.uri(key))
        return self.put(key, body)

    def check_conditions(self, key: str, body: bytes) -> None:
        """No two attempts write here."""

    def put(self, key: str, body: bytes) -> str:
        etag = f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'
        now = self._now()
        self._objects[key] = StoredObject(key, body, etag, now, now)
        self._note(f"PUT {self.uri(key)}")
        return etag

    def delete(self, key: str) -> None:
        self._objects[key] = None
        self._note(f"DELETE {self.uri(key)}")

    def delete_all(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.delete(key)

    def list(self, prefix: str, *, start_after: str = "", at_once: int = PAGE) -> Iterator[ListedObject]:
        objects = {
            entry.key: entry
            for entry in self._below.list(prefix, start_after=start_after, at_once=at_once)
            if entry.key not in self._objects
        }
        for key, stored in self._objects.items():
            if stored is not None and key.startswith(prefix) and key > start_after:
                objects[key] = ListedObject(key, len(stored.body), stored.last_modified)
        yield from (objects[key] for key in sorted(objects))

    def uploads(self, prefix: str) -> Iterator[Upload]:
        yield from (upload for upload in self._below.uploads(prefix) if upload not in self._aborted)

    def abort(self, upload: Upload) -> None:
        self._aborted.add(upload)
        self._note(f"ABORT upload of {self.uri(upload.key)}")

    def uri(self, key: str) -> str:
        return self._below.uri(key)

    def _note(self, change: str) -> None:
        if len(self.changes) < _SHOWN_MAX:
            self.changes.append(change)
        else:
            self.changes_more += 1


@dataclass(frozen=True, slots=True)
class Recovered:
    """The result for one write.

    `action`: settled, cleaned, unclean (its verdict stands), alive (not changed), unclaimed (the table holds nothing of
    it), none (nothing to do), failed or unreadable. `run_key` and `table` are None if neither document nor marker could
    be read.

    `changes` are the requests that a dry run has left out; `changes_more` counts the ones beyond the list.
    """

    write_key: str
    run_key: str | None
    table: str | None
    step: str | None
    before: str
    status: str
    action: str
    reason: str | None
    undo_refused: str | None
    checkpoint: str
    changes: tuple[str, ...] = ()
    changes_more: int = 0


def marked_keys(store: ObjectStore) -> tuple[str, ...]:
    """Return the keys of all writes with a marker."""
    return tuple(dict.fromkeys(marker.write_key for marker in Checkpoints(store).marked()))


@dataclass(frozen=True, slots=True)
class Recoverer:
    """Settles writes of one checkpoint bucket until `until_ms`. `table_store` opens a table by its URI.

    `spark_settings` name Iceberg catalogs, beside those that the environment names.
    """

    store: ObjectStore
    table_store: Callable[[str], ObjectStore]
    clock: Clock
    audit_log: bool
    until_ms: int
    spark_settings: Mapping[str, str] = field(default_factory=dict)
    threads: int = THREADS

    def settle_all(self, write_keys: Sequence[str], *, dry_run: bool) -> list[Recovered]:
        """Settle writes as the sweeper does: at random, each first within a share of the time. Return the results in
        the order of the keys, without those of keys of no write.
        """
        taken = random.sample(write_keys, len(write_keys))
        found = in_shares(
            taken,
            lambda key, may_go_on: self.settle(key, dry_run=dry_run, may_go_on=may_go_on),
            lambda one: one is not None and one.action in (Action.FAILED, Action.UNCLEAN),
            self._may_go_on,
            self.clock,
            threads=self.threads,
        )
        of_key = dict(zip(taken, found, strict=True))
        return [one for key in write_keys if (one := of_key[key]) is not None]

    def _may_go_on(self) -> bool:
        return self.clock() < self.until_ms

    def settle(self, write_key: str, *, dry_run: bool, may_go_on: Callable[[], bool] | None = None) -> Recovered | None:
        """Settle a write if it is open and its owner is dead, and clean up after it; None if there is no such write.

        Problems with the write or its stores do not raise, so that the caller can settle the other writes. `dry_run`:
        work on overlays, and change nothing.
        """
        overlays: list[Overlay] = []
        rehearsal: list[str] = []

        def open_store(store: ObjectStore) -> ObjectStore:
            if not dry_run:
                return store
            overlays.append(Overlay(store, lambda: datetime.fromtimestamp(self.clock() / 1000, UTC)))
            return overlays[-1]

        tables: dict[str, ObjectStore] = {}

        def table_store(uri: str) -> ObjectStore:
            if uri not in tables:
                tables[uri] = open_store(self.table_store(uri))
            return tables[uri]

        checkpoints = Checkpoints(open_store(self.store))
        recovery = Recovery(
            checkpoints,
            table_store,
            clock=self.clock,
            audit_log=self.audit_log,
            may_go_on=may_go_on or self._may_go_on,
            spark_settings=self.spark_settings,
            rehearsal=rehearsal if dry_run else None,
        )
        looked = settle_one(checkpoints, recovery, write_key, Cause.OPERATOR, self.clock)
        document, write = looked.document, looked.document or looked.marker
        if write is None and looked.action is Action.NONE:
            return None
        without = _UNREAD if write is None else _ANNOUNCED
        return Recovered(
            write_key=write_key,
            run_key=None if write is None else write.run_key,
            table=None if write is None else write.table,
            step=None if write is None else write.step,
            before=without if looked.before is None else looked.before.status.value,
            status=without if document is None else document.status.value,
            action=looked.action.value,
            reason=looked.problem or (None if document is None else document.reason),
            undo_refused=None if document is None else document.undo_refused,
            checkpoint=checkpoints.uri(write_key),
            changes=(
                *(change for overlay in overlays for change in overlay.changes),
                *rehearsal,
            ),
            changes_more=sum(overlay.changes_more for overlay in overlays),
        )

    def forget_leases(self) -> None:
        """Delete leases older than a day: their owners are dead."""
        Checkpoints(self.store).forget_leases(self.clock(), self._may_go_on)


def recovered_view(recovered: Sequence[Recovered]) -> View:
    """Show one row for each write, then the changes of a dry run."""
    rows = _table(recovered) if recovered else "no write to recover"
    return View(document_of(recovered), (rows, *_changes(recovered)))


def _table(recovered: Sequence[Recovered]) -> Table:
    table = columns("run", "write", "step", "was", "is", "done", "reason")
    for entry in recovered:
        table.add_row(
            Text(entry.run_key or "-"),
            Text(entry.table or entry.write_key),
            entry.step or "",
            styled(entry.before),
            styled(entry.status),
            "nothing to do" if entry.action == "none" else entry.action,
            Text(entry.undo_refused or entry.reason or ""),
        )
    return table


def _changes(recovered: Sequence[Recovered]) -> Iterator[Text]:
    for entry in recovered:
        yield from (Text(f"  {change}", style="dim") for change in entry.changes)
        if entry.changes_more:
            yield Text(f"  and {entry.changes_more:,} more", style="dim")
