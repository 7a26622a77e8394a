"""Remove manifests so that no rollback leaves a removed one current.

A clean-up puts a removal notice beside the manifest, reads `_CURRENT`, deletes the manifest, and then the notice. A
rollback moves `_CURRENT`, then looks for notices and the manifest. The later of the two sees the earlier one: the
clean-up keeps a manifest that is current by now, and a rollback to a manifest that is being removed is undone. Each
clean-up has its own notice: one may keep the manifest while another one, which has read `_CURRENT` before, deletes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.entropy import unique_id
from safewriter.objects.store import is_there
from safewriter.snapshots.format.current import CURRENT, CURRENT_MAX_BYTES, Current

if TYPE_CHECKING:
    from safewriter.objects.store import ObjectStore

__all__ = ["is_kept", "notices_of", "remove_manifest"]


def notices_of(key: str) -> str:
    """Return the prefix of a manifest's removal notices; each clean-up puts its own."""
    return f"{key}.removing-"


def is_kept(store: ObjectStore, key: str) -> bool:
    """Return whether a manifest is there, and no clean-up is removing it. Raises `StoreError`."""
    # In this order: a clean-up removes its notice after the manifest.
    return next(iter(store.list(notices_of(key))), None) is None and is_there(store, key)


def remove_manifest(store: ObjectStore, key: str) -> bool:
    """Remove a manifest unless it is current; return whether it is gone. Raises `StoreError`, `ManifestParseError`."""
    notice = f"{notices_of(key)}{unique_id()}"
    store.put(notice, b"")
    try:
        stored = store.get(CURRENT, max_bytes=CURRENT_MAX_BYTES)
        is_current = stored is None or Current.decode(stored.body, CURRENT).manifest_ref == store.uri(key)
        if not is_current:
            store.delete(key)
    finally:
        store.delete(notice)
    return not is_current
