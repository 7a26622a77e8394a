"""The manifests of a prefix: the current one, those that were current, and those that never were."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from safewriter.objects.store import ListedObject, ObjectStore
    from safewriter.snapshots.format.current import Current
    from safewriter.snapshots.read.source import Source

__all__ = ["MANIFESTS", "HistoryEntry", "entries", "history"]

MANIFESTS: Final = "manifests/"
_KEY: Final = re.compile(r"manifests/(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)_run_id=([^/]+)/manifest")


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A manifest. `published_at`: when it was last made current; None if that is unknown, or it never was.

    `is_published` is false if the manifest was certainly never current, for example because another build was faster.
    """

    manifest_ref: str
    key: str
    run_id: str
    created_at: datetime
    written_at: datetime
    published_at: datetime | None
    is_published: bool
    is_current: bool


def history(source: Source) -> tuple[HistoryEntry, ...]:
    """Return the manifests that were published, those of the newest builds first.

    Raises `ReaderStateError` without `_CURRENT`, `ManifestParseError` if it is damaged, `StoreError`.
    """
    return tuple(entry for entry in entries(source.store, source.current()[1]) if entry.is_published)


def entries(store: ObjectStore, current: Current) -> list[HistoryEntry]:
    """Return all manifests, those of the newest builds first.

    `_CURRENT` has a history of its last publications. A manifest that is younger than the earliest of them, and not
    among them, was never published. If the history is complete, that holds for all manifests that are not in it. If it
    is not (there were too many, or another program wrote it), older manifests count as published.
    """
    times = {past.manifest_ref: moment(past.at) for past in reversed(current.history)}
    earliest = min(times.values(), default=None)
    history = []
    for manifest in store.list(MANIFESTS):
        entry = _entry(store, manifest, current, times, earliest)
        if entry is not None:
            history.append(entry)
    return sorted(history, key=lambda entry: (entry.created_at, entry.key), reverse=True)


def moment(text: str) -> datetime:
    """Parse a moment; without a time zone it is UTC. Raises `ValueError`."""
    time = datetime.fromisoformat(text)
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _entry(
    store: ObjectStore,
    manifest: ListedObject,
    current: Current,
    times: dict[str, datetime],
    earliest: datetime | None,
) -> HistoryEntry | None:
    match = _KEY.fullmatch(manifest.key)
    if match is None:
        return None
    try:
        created = moment(match[1])
    except ValueError:
        return None  # the date does not exist, so no build has written it
    ref = store.uri(manifest.key)
    is_current = ref == current.manifest_ref
    was_published = ref in times or (not current.has_all and (earliest is None or created < earliest))
    return HistoryEntry(
        ref,
        manifest.key,
        match[2],
        created,
        manifest.last_modified,
        times.get(ref),
        is_current or was_published,
        is_current,
    )
