"""The checkpoint bucket: documents by compare-and-swap, one marker and one lease for each attempt."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from safewriter.objects.store import PreconditionFailed, StoreError
from safewriter.state import Checkpoint

if TYPE_CHECKING:
    from datetime import datetime

    from safewriter.objects.store import ObjectStore
    from safewriter.state import AttemptRecord

__all__ = ["GRACE_MS", "LEASE_MS", "Checkpoints", "HeldCheckpoint", "StoredCheckpoint"]

LEASE_MS: Final = 20_000
"""An attempt whose lease is older than this counts as dead."""
GRACE_MS: Final = 60_000
"""After a deadline and this long, no request of the attempt is still on its way."""

_CLOSED: Final = b'{"closed":true}\n'


@dataclass(frozen=True, slots=True)
class HeldCheckpoint:
    """A document as it was read or written last, with what a change of it needs."""

    document: Checkpoint
    etag: str


@dataclass(frozen=True, slots=True)
class StoredCheckpoint(HeldCheckpoint):
    """A document as read, with the store's clock at that moment."""

    last_modified: datetime
    server_date: datetime


class Checkpoints:
    """The documents of one checkpoint bucket."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store

    def uri(self, write_key: str) -> str:
        """Return where the document of a write lies."""
        return self.store.uri(_document(write_key))

    def read(self, write_key: str) -> StoredCheckpoint | None:
        """Return the document, or None; `UnreadableCheckpointError` if it is of an unknown version."""
        found = self.store.get(_document(write_key))
        if found is None:
            return None
        return StoredCheckpoint(Checkpoint.from_bytes(found.body), found.etag, found.last_modified, found.server_date)

    def create(self, document: Checkpoint) -> HeldCheckpoint | None:
        """Write the first document of a write key; None if there is one."""
        try:
            return HeldCheckpoint(document, self.store.create(_document(document.write_key), document.to_bytes()))
        except PreconditionFailed:
            return None

    def replace(self, held: HeldCheckpoint, document: Checkpoint) -> HeldCheckpoint | None:
        """Write the document if it is still the one that is held; None if it is not."""
        try:
            etag = self.store.replace(_document(document.write_key), document.to_bytes(), etag=held.etag)
        except PreconditionFailed:
            return None
        return HeldCheckpoint(document, etag)

    # -- markers: so that what is open is found at a cost that grows with what is open -------------------------------

    def mark(self, write_key: str, nonce: str, deadline_ms: int | None) -> None:
        """Announce an attempt, before it touches the document."""
        self.store.put(_marker(write_key, nonce), json.dumps({"version": 1, "deadline_ms": deadline_ms}).encode())

    def unmark(self, write_key: str, nonce: str) -> None:
        """Remove the marker and the lease of an attempt of which nothing is left to do."""
        self.store.delete(_marker(write_key, nonce))
        self.store.delete(_lease(write_key, nonce))

    def marked(self, write_key: str) -> tuple[str, ...]:
        """Return the nonces of the attempts that have a marker (needs ListBucket)."""
        prefix = f"open/{write_key}/"
        return tuple(listed.key[len(prefix) :] for listed in self.store.list(prefix))

    # -- leases: for progress and politeness, no safety rests on them ------------------------------------------------

    def renew_lease(self, write_key: str, nonce: str) -> None:
        """Say that the attempt lives; the store's own clock dates it."""
        self.store.put(_lease(write_key, nonce), b"alive")

    def lease_renewed_at(self, write_key: str, nonce: str) -> datetime | None:
        """Return when the attempt last said that it lives, on the store's clock."""
        found = self.store.get(_lease(write_key, nonce))
        return None if found is None else found.last_modified

    def is_dead(self, stored: StoredCheckpoint) -> bool:
        """Tell whether the owner of an open document is dead, by the store's clock alone."""
        if past_grace(stored.document.attempt, stored.server_date):
            return True
        renewed = self.lease_renewed_at(stored.document.write_key, stored.document.owner)
        last_sign = max(stored.last_modified, renewed) if renewed is not None else stored.last_modified
        return (stored.server_date - last_sign).total_seconds() * 1000 > LEASE_MS

    # -- what an unsettled creation is fenced by ---------------------------------------------------------------------

    def creation_key(self, write_key: str, epoch: int) -> str:
        """Return the key of the note that a creating commit writes before it is sent."""
        return f"creations/{write_key}/{epoch}"

    def close_creation(self, write_key: str, epoch: int) -> bytes | None:
        """Take the creation note of an epoch that is being settled.

        Returns None if no commit of that epoch was or can ever be sent, else the note: the protocol and metaData
        actions of the table that the commit would have created.
        """
        key = self.creation_key(write_key, epoch)
        try:
            self.store.create(key, _CLOSED)
        except PreconditionFailed:
            found = self.store.get(key)
            if found is None:
                raise StoreError(f"{self.store.uri(key)} exists but cannot be read") from None
            return None if found.body == _CLOSED else found.body
        return None

    def forget_creation(self, write_key: str, epoch: int) -> None:
        """Remove the note of a creation that has landed."""
        self.store.delete(self.creation_key(write_key, epoch))

    # -- the trail of rollbacks --------------------------------------------------------------------------------------

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


def past_grace(attempt: AttemptRecord, now: datetime) -> bool:
    """Tell whether nothing of an attempt can still be on its way; without a deadline its verdict counts as its end."""
    ended_ms = attempt.deadline_ms if attempt.deadline_ms is not None else attempt.settled_ms
    return ended_ms is not None and now.timestamp() * 1000 > ended_ms + GRACE_MS


def _document(write_key: str) -> str:
    return f"checkpoints/{write_key}.json"


def _marker(write_key: str, nonce: str) -> str:
    return f"open/{write_key}/{nonce}"


def _lease(write_key: str, nonce: str) -> str:
    return f"leases/{write_key}/{nonce}"
