"""Remove manifests so that no rollback to one of them can be half done.

A manifest is marked, then the pointer is read, then the manifest is deleted, then the mark. A rollback moves the
pointer, then looks for mark and manifest. Whichever is first, the other one sees it: the clean-up leaves a manifest
that is current by now, and a rollback to one that goes is undone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.snapshots.format.current import CURRENT, Current

if TYPE_CHECKING:
    from safewriter.objects.store import ObjectStore

__all__ = ["mark_of", "remove_manifest"]


def mark_of(key: str) -> str:
    """Return the key of the object that says that a manifest is being removed."""
    return f"{key}.removing"


def remove_manifest(store: ObjectStore, key: str) -> bool:
    """Remove a manifest unless it is current; return whether it is gone. Raises `StoreError`, `ManifestParseError`."""
    store.put(mark_of(key), b"")
    try:
        found = store.get(CURRENT)
        is_current = found is None or Current.decode(found.body, CURRENT).manifest_ref == store.uri(key)
        if not is_current:
            store.delete(key)
    finally:
        store.delete(mark_of(key))
    return not is_current
