"""Remove manifests so that no rollback to one of them can be half done.

A clean-up puts a removal notice beside the manifest, reads the pointer, deletes the manifest, and then the notice. A
rollback moves the pointer, then looks for notices and manifest. Whichever is first, the other one sees it: the clean-up
leaves a manifest that is current by now, and a rollback to one that goes is undone. Each clean-up has a notice of its
own: one that leaves the manifest says nothing about another one that has read the pointer before.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from safewriter.objects.store import is_there
from safewriter.snapshots.format.current import CURRENT, CURRENT_MAX_BYTES, Current

if TYPE_CHECKING:
    from safewriter.objects.store import ObjectStore

__all__ = ["is_kept", "notices_of", "remove_manifest"]


def notices_of(key: str) -> str:
    """Return the prefix of the objects that say that a manifest is being removed, one for each who does so."""
    return f"{key}.removing-"


def is_kept(store: ObjectStore, key: str) -> bool:
    """Tell whether a manifest is there, and nobody removes it. Raises `StoreError`."""
    # In this order: a clean-up removes its notice after the manifest.
    return next(iter(store.list(notices_of(key))), None) is None and is_there(store, key)


def remove_manifest(store: ObjectStore, key: str) -> bool:
    """Remove a manifest unless it is current; return whether it is gone. Raises `StoreError`, `ManifestParseError`."""
    notice = f"{notices_of(key)}{uuid.uuid4().hex}"
    store.put(notice, b"")
    try:
        stored = store.get(CURRENT, max_bytes=CURRENT_MAX_BYTES)
        is_current = stored is None or Current.decode(stored.body, CURRENT).manifest_ref == store.uri(key)
        if not is_current:
            store.delete(key)
    finally:
        store.delete(notice)
    return not is_current
