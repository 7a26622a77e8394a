"""Guards that are broken on purpose, in this process only: schedules must find each."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from safewriter.objects.store import StoreError
from safewriter.record.checkpoints import Checkpoints, HeldCheckpoint
from safewriter.record.document import OPEN, Checkpoint
from safewriter.tables.delta import undo
from safewriter.tables.delta.commit import Commit
from safewriter.tables.delta.history import DeltaHistory

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BROKEN_GUARDS", "broken"]


def _empty_if_unread(history: DeltaHistory, version: int, body: bytes | None = None) -> Commit:
    try:
        return _READ(history, version, body)
    except StoreError:
        return Commit.parse(version, b"")


def _no_fence(history: Any, document: Any, *_: Any) -> Any:
    return history.since(document.attempt)


def _overwrites(checkpoints: Checkpoints, _: object, document: Any) -> HeldCheckpoint:
    etag = checkpoints.store.put(f"checkpoints/{document.write_key}.json", document.to_bytes())
    return HeldCheckpoint(document, etag)


def _settles_any(document: Checkpoint, _: object) -> bool:
    return document.status in OPEN


def _undoes_any(document: Checkpoint, commit: Commit) -> str | None:
    obstacle = _MORE(document, commit)
    return None if obstacle is not None and "does not name" in obstacle else obstacle


_READ: Final = DeltaHistory.read
_MORE: Final = undo._more_than_adds
BROKEN_GUARDS: Final[dict[str, tuple[str, Any]]] = {
    "a version that cannot be read counts as one without the write": (
        "safewriter.tables.delta.history.DeltaHistory.read",
        _empty_if_unread,
    ),
    "no fence before rolled_back": ("safewriter.tables.delta.table.fence", _no_fence),
    "documents change without compare-and-swap": ("safewriter.record.checkpoints.Checkpoints.replace", _overwrites),
    "a guard settles a later attempt's epoch": (
        "safewriter.settle.recovery.Recovery._may_settle",
        staticmethod(_settles_any),
    ),
    "a settler undoes the commit of an attempt that its document does not name": (
        "safewriter.tables.delta.undo._more_than_adds",
        _undoes_any,
    ),
}
"""The rule that is missing, what is replaced in the code, and by what."""


@contextmanager
def broken(name: str) -> Iterator[None]:
    """Take a rule out of the code of this process."""
    target, fake = BROKEN_GUARDS[name]
    with patch(target, fake):
        yield
