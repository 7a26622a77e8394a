"""An Iceberg table's metadata as JSON: the fields that a settler reads, and the one change that it makes: a fence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from safewriter.objects.location import Location
from safewriter.tables.iceberg.name import MAIN

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "FenceTag",
    "LiveTable",
    "data_folder",
    "head_of",
    "history_of",
    "left_behind",
    "misplaced",
    "properties",
    "references",
    "sequence_of",
]

_PLACES: Final = ("write.data.path", "write.folder-storage.path", "write.object-storage.path", "write.metadata.path")
_SHARED: Final = re.compile(r"(?!file:)[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_HELD_BACK: Final = "/__magic"
"""S3A's magic committer takes folders with this prefix for its own: it never completes the uploads of their files."""


@dataclass(frozen=True, slots=True)
class LiveTable:
    """A table's metadata as it was read. The catalog compares a commit with `version`, in the catalog's own terms.

    `location`: the URI of the metadata file; None if the catalog does not report it.
    """

    metadata: dict[str, Any]
    version: Any
    location: str | None = None


@dataclass(frozen=True, slots=True)
class FenceTag:
    """The tag that a settler adds."""

    name: str
    snapshot_id: int
    max_ref_age_ms: int

    @property
    def tag(self) -> dict[str, Any]:
        """The tag as it stands in metadata and in REST requests."""
        return {"snapshot-id": self.snapshot_id, "type": "tag", "max-ref-age-ms": self.max_ref_age_ms}


def properties(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the table's properties."""
    return metadata.get("properties") or {}


def data_folder(metadata: Mapping[str, Any]) -> Location:
    """Return where new data files go, as Iceberg's `LocationProviders` decides; `ValueError` if that is not on S3."""
    settings = properties(metadata)
    folder = next((settings[key] for key in ("write.data.path", "write.folder-storage.path") if key in settings), None)
    return Location.parse((folder or f"{metadata['location'].rstrip('/')}/data").rstrip("/"))


def misplaced(metadata: Mapping[str, Any]) -> str | None:
    """Return why the table's files would go to a place where no other process finds them; None if they would not.

    A path without a scheme is below the directory of the process that writes it.
    """
    texts = properties(metadata)
    places: dict[str, str] = {
        "location": metadata.get("location") or "",
        **{key: texts[key] for key in _PLACES if key in texts},
    }
    for key, place in places.items():
        if not _SHARED.match(place):
            return f"{key} is {place!r}, which is a place of this process alone"
        if _HELD_BACK in place:
            return f"{key} is {place!r}, where S3A may keep files back ({_HELD_BACK[1:]})"
    return None


def references(metadata: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return branches and tags by their names; main alone if the metadata has no `refs`, as in old version 1."""
    refs: dict[str, dict[str, Any]] | None = metadata.get("refs")
    if refs is not None:
        return refs
    head = metadata.get("current-snapshot-id")
    return {} if head in (None, -1) else {MAIN: {"snapshot-id": head, "type": "branch"}}


def head_of(metadata: Mapping[str, Any], reference: str) -> int | None:
    """Return the snapshot that a branch or tag shows; None if there is no such reference."""
    ref = references(metadata).get(reference)
    return None if ref is None else int(ref["snapshot-id"])


def sequence_of(metadata: Mapping[str, Any]) -> int:
    """Return the number of the last snapshot in the order of commits, on any branch; 0 in format version 1."""
    return int(metadata.get("last-sequence-number") or 0)


def history_of(metadata: Mapping[str, Any], reference: str) -> set[int]:
    """Return the snapshot that a branch or tag shows, and those before it that the table still lists."""
    parents = {entry["snapshot-id"]: entry.get("parent-snapshot-id") for entry in metadata.get("snapshots") or ()}
    history: set[int] = set()
    at = head_of(metadata, reference)
    while at is not None and at in parents and at not in history:
        history.add(at)
        at = parents[at]
    return history


def left_behind(metadata: Mapping[str, Any], reference: str) -> set[int]:
    """Return the listed snapshots that are not in a branch's history; none if the table lists only a part of that."""
    history = history_of(metadata, reference)
    entries = metadata.get("snapshots") or ()
    is_whole = any(entry["snapshot-id"] in history and entry.get("parent-snapshot-id") is None for entry in entries)
    return {entry["snapshot-id"] for entry in entries} - history if is_whole else set()
