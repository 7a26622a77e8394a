"""The checkpoint bucket: documents by compare-and-swap, one marker and one lease for each attempt."""

from __future__ import annotations

import dataclasses
import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final, TypeVar

from safewriter.bounds import short
from safewriter.errors import UnreadableCheckpointError
from safewriter.objects.store import PreconditionFailed, StoreError, TooLarge
from safewriter.record.document import RECORD_MAX_BYTES, Checkpoint
from safewriter.record.liveness import LEASE_MS, Sighting, is_over
from safewriter.record.marker import Marker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from safewriter.objects.store import ListedObject, ObjectStore, StoredObject
    from safewriter.record.document import AttemptRecord

__all__ = ["FINISHED", "UNCLAIMED", "Announced", "Checkpoints", "HeldCheckpoint", "ListedMarker", "StoredCheckpoint"]

_T = TypeVar("_T")
FINISHED: Final = "soal=finished"
"""The S3 tag of objects that may expire: tombstones, and documents of settled and cleaned writes."""
_CLOSED: Final = b'{"closed":true}\n'
_OPEN: Final = "open/"
_LEASES: Final = "leases/"
_MARKERS_MAX: Final = 1000
"""More attempts at one write than a sweep ever finds: a job would have to die each minute for most of a day."""
_LEASE_MAX_BYTES: Final = 1 << 10
UNCLAIMED: Final = timedelta(days=1)
"""An attempt without a deadline that has not claimed after this time will not; beside a document, no attempt at all."""
_OLD_LEASE: Final = timedelta(days=1)
"""Far longer than a lease lives, and more than any two clocks differ."""


@dataclass(frozen=True, slots=True)
class HeldCheckpoint:
    """A document as last read or written, with the ETag that a change of it needs."""

    document: Checkpoint
    etag: str


@dataclass(frozen=True, slots=True)
class StoredCheckpoint(HeldCheckpoint):
    """A document as read, with the store's clock at that moment."""

    last_modified: datetime
    server_date: datetime


@dataclass(frozen=True, slots=True)
class ListedMarker:
    """An attempt that has a marker; `since` is when it was announced, by the store's clock."""

    write_key: str
    nonce: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Announced:
    """A marker as read. `since`: when it was put; `now`: when it was read; both by the store's clock."""

    marker: Marker
    since: datetime
    now: datetime

    @property
    def since_ms(self) -> int:
        """When the marker was put, by the store's clock and the attempt's own, whichever is earlier (epoch ms)."""
        return min(int(self.since.timestamp() * 1000), self.marker.started_ms)

    @property
    def is_over(self) -> bool:
        """Whether the attempt can no longer claim: deadline and grace have passed, or a day if it has no deadline."""
        if self.marker.deadline_ms is None:
            return self.now - self.since > UNCLAIMED
        return is_over(self.marker.deadline_ms, self.now)


class Checkpoints:
    """The documents of one checkpoint bucket. `catalog`: put into markers, so that a settler can reach the catalog."""

    def __init__(self, store: ObjectStore, catalog: Mapping[str, str] | None = None) -> None:
        self.store = store
        self._catalog = dict(catalog or {})

    def announcing(self, catalog: Mapping[str, str]) -> Checkpoints:
        """Return the same documents, with these properties of the catalog for their markers."""
        return Checkpoints(self.store, catalog)

    def uri(self, write_key: str) -> str:
        """Return the URI of the document of a write."""
        return self.store.uri(_document(write_key))

    def read(self, write_key: str) -> StoredCheckpoint | None:
        """Return the document; None if the store says that there is none (a 404).

        Raises `StoreError` if it may not be read, `UnreadableCheckpointError`, with its ETag, if it cannot be parsed.
        """
        found = self._parsed(
            _document(write_key), Checkpoint.from_bytes, lambda document: _document(document.write_key)
        )
        if found is None:
            return None
        document, stored = found
        return StoredCheckpoint(document, stored.etag, stored.last_modified, stored.server_date)

    def _parsed(
        self, key: str, parse: Callable[[bytes], _T], key_of: Callable[[_T], str]
    ) -> tuple[_T, StoredObject] | None:
        """Read and parse an object; None if there is none. It must lie where `key_of` says."""
        try:
            stored = self.store.get(key, max_bytes=RECORD_MAX_BYTES)
        except TooLarge as error:
            raise UnreadableCheckpointError(str(error), error.etag) from error
        if stored is None:
            return None
        try:
            content = parse(stored.body)
        except UnreadableCheckpointError as error:
            raise type(error)(f"{self.store.uri(key)}: {error}", stored.etag) from error
        if key_of(content) != key:
            raise UnreadableCheckpointError(f"{self.store.uri(key)} tells of {short(key_of(content))}", stored.etag)
        return content, stored

    def create(self, document: Checkpoint) -> HeldCheckpoint | None:
        """Write the first document of a write key; return None if there is one already."""
        key, body = _document(document.write_key), document.to_bytes()
        return self._written(document, lambda tag: self.store.create(key, body, tag=tag))

    def replace(self, checkpoint: HeldCheckpoint, document: Checkpoint) -> HeldCheckpoint | None:
        """Replace the held document if it is unchanged in the store; return None otherwise."""
        key, body = _document(document.write_key), document.to_bytes()
        return self._written(document, lambda tag: self.store.replace(key, body, etag=checkpoint.etag, tag=tag))

    @staticmethod
    def _written(document: Checkpoint, write: Callable[[str], str]) -> HeldCheckpoint | None:
        """Write a document; tag it if it is finished, so that it may expire."""
        try:
            return HeldCheckpoint(document, _tagged(write) if document.is_finished else write(""))
        except PreconditionFailed:
            return None

    # -- markers: the cost of finding the open writes grows only with their number -----------------------------------

    def mark(self, marker: Marker) -> None:
        """Announce an attempt, before it touches the document.

        Raises `UnsupportedError` if the store ignores the conditions that guard the document; the marker is there then.
        """
        key = _marker(marker.write_key, marker.nonce)
        body = dataclasses.replace(marker, catalog=self._catalog or marker.catalog).to_bytes()
        self.store.put(key, body)
        self.store.check_conditions(key, body)

    def announced(self, marker: ListedMarker) -> Announced | None:
        """Return a marker's content, None if it is gone; raise `UnreadableCheckpointError` if it cannot be parsed."""
        found = self._parsed(
            _marker(marker.write_key, marker.nonce), Marker.from_bytes, lambda read: _marker(read.write_key, read.nonce)
        )
        return None if found is None else Announced(found[0], found[1].last_modified, found[1].server_date)

    def unmark(self, write_key: str, nonce: str) -> None:
        """Remove the marker of an attempt that needs no more work. Its lease expires by itself."""
        self.store.delete(_marker(write_key, nonce))

    def markers_of(self, write_key: str) -> Iterator[ListedMarker]:
        """List the attempts of one write that have a marker, the oldest first. Needs ListBucket.

        Raises `UnreadableCheckpointError` for more than attempts can have put.
        """
        listed = self.store.list(folder := f"{_OPEN}{write_key}/")
        markers = list(map(_listed_marker, islice(listed, _MARKERS_MAX + 1)))
        if len(markers) > _MARKERS_MAX:
            raise UnreadableCheckpointError(
                f"{self.store.uri(folder)} has more than {_MARKERS_MAX:,} markers, which no attempts can have put;"
                " delete the false ones"
            )
        yield from sorted(markers, key=lambda marker: marker.since)

    def marked(self, *, start: str = "") -> Iterator[ListedMarker]:
        """List the attempts that have a marker: those whose write key is not before `start`, then the others.

        Needs ListBucket.
        """
        turn = _OPEN + start
        yield from map(_listed_marker, self.store.list(_OPEN, start_after=turn))
        if start:
            yield from map(_listed_marker, takewhile(lambda marker: marker.key <= turn, self.store.list(_OPEN)))

    # -- leases: for progress only, no safety rests on them ----------------------------------------------------------

    def renew_lease(self, write_key: str, nonce: str) -> None:
        """Renew the lease of an attempt; the store's own clock dates it."""
        self.store.put(_lease(write_key, nonce), b"alive")

    def has_sign_of_life(self, marker: ListedMarker) -> bool:
        """Return whether an attempt has a lease that has not expired."""
        lease = self.store.get(_lease(marker.write_key, marker.nonce), max_bytes=_LEASE_MAX_BYTES)
        return lease is not None and lease.server_date - lease.last_modified <= timedelta(milliseconds=LEASE_MS)

    def sighting(self, stored: StoredCheckpoint) -> Sighting:
        """Return the signs of life of a document's owner.

        Raises `StoreError` if its lease may not be read, or is missing and S3 denies the GET of a missing object: then
        the owner is known to be dead only once its time is over.
        """
        document = stored.document
        last_sign = stored.last_modified
        if not past_grace(document.attempt, stored.server_date):
            lease = self.store.get(_lease(document.write_key, document.owner), max_bytes=_LEASE_MAX_BYTES)
            last_sign = last_sign if lease is None else max(last_sign, lease.last_modified)
        return Sighting(stored.etag, last_sign, stored.server_date, _end_ms(document.attempt))

    def forget_leases(self, now_ms: int, may_go_on: Callable[[], bool]) -> None:
        """Remove the leases that were not renewed for a day.

        An expired lease means the same as none. Needs ListBucket, and the right to delete, which no job needs here.
        """
        before = datetime.fromtimestamp(now_ms / 1000, UTC) - _OLD_LEASE
        for lease in self.store.list(_LEASES):
            if not may_go_on():
                break
            if lease.last_modified < before:
                self.store.delete(lease.key)

    # -- notes: the fence of a creation needs them -------------------------------------------------------------------

    def note_key(self, write_key: str, epoch: int) -> str:
        """Return the key of the note that precedes a commit which creates a table."""
        return f"notes/{write_key}/{epoch}"

    def close_creation(self, write_key: str, epoch: int) -> bytes | None:
        """Close the creation note of an epoch that is being settled: put a tombstone if there is no note.

        Returns None if no commit of that epoch was or can ever be sent, else the note: the protocol and metaData
        actions of the table that the commit would have created.
        """
        key = self.note_key(write_key, epoch)
        try:
            _tagged(lambda tag: self.store.create(key, _CLOSED, tag=tag))
        except PreconditionFailed:
            note = self.store.get(key, max_bytes=RECORD_MAX_BYTES)
            if note is None:
                raise StoreError(f"{self.store.uri(key)} was there, and is gone") from None
            return None if note.body == _CLOSED else note.body
        return None

    def forget_note(self, write_key: str, epoch: int) -> None:
        """Tag the note of a commit that has landed for good, so that it expires like a tombstone.

        It is not deleted: a role that may delete notes could lift the fence of a creation.
        """
        note = self.store.get(key := self.note_key(write_key, epoch), max_bytes=RECORD_MAX_BYTES)
        if note is not None:
            with suppress(PreconditionFailed):  # another process has tagged it
                _tagged(lambda tag: self.store.replace(key, note.body, etag=note.etag, tag=tag))

    # -- the audit log of rollbacks ----------------------------------------------------------------------------------

    def audit(self, document: Checkpoint, event: str) -> None:
        """Write one JSON line for a rollback: one object each, since S3 cannot append."""
        line = {
            "event": event,
            "settled_ms": document.attempt.settled_ms,
            "run_key": document.run_key,
            "write_key": document.write_key,
            "table": document.table,
            "step": document.step,
            "reason": document.reason,
            "attempt": dataclasses.asdict(document.attempt),
        }
        self.store.put(f"audit/{document.write_key}-{document.epoch}-{event}.jsonl", json.dumps(line).encode() + b"\n")


def _tagged(write: Callable[[str], str]) -> str:
    """Write with the tag, or without it if the store denies tags: then the object never expires."""
    try:
        return write(FINISHED)
    except StoreError as error:
        if not error.denied:
            raise
        return write("")


def past_grace(attempt: AttemptRecord, now: datetime) -> bool:
    """Return whether no request of an attempt can still arrive."""
    return is_over(_end_ms(attempt), now)


def _end_ms(attempt: AttemptRecord) -> int | None:
    # Without a deadline its verdict counts as its end.
    return attempt.deadline_ms if attempt.deadline_ms is not None else attempt.settled_ms


def _document(write_key: str) -> str:
    return f"checkpoints/{write_key}.json"


def _marker(write_key: str, nonce: str) -> str:
    return f"{_OPEN}{write_key}/{nonce}"


def _listed_marker(entry: ListedObject) -> ListedMarker:
    write_key, _, nonce = entry.key[len(_OPEN) :].partition("/")
    return ListedMarker(write_key, nonce, entry.last_modified)


def _lease(write_key: str, nonce: str) -> str:
    return f"{_LEASES}{write_key}/{nonce}"
