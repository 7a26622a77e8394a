"""An Iceberg table's metadata as JSON: the fields that a settler reads, and the one change that it makes: a fence.

`MetadataFile` replaces values in the file's text. All other text stays as it was, to the byte: fields that this module
does not know, and numbers that Python would write otherwise.
"""

from __future__ import annotations

import gzip
import json
import re
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from safewriter.objects.location import Location
from safewriter.objects.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from safewriter.objects.store import ObjectStore

__all__ = ["Fence", "Held", "MetadataFile", "head_of", "properties", "references", "table_uuid"]

_MAIN: Final = "main"
_GZIP: Final = b"\x1f\x8b"
_PREVIOUS: Final = ("write.metadata.previous-versions-max", 100)  # Iceberg's property and its default
_VERSION: Final = re.compile(r"(\d+)-")
_OPEN, _COLON, _COMMA, _CLOSE = (re.compile(rf"[ \t\r\n]*{sign}[ \t\r\n]*") for sign in (r"\{", ":", ",", r"\}"))


@dataclass(frozen=True, slots=True)
class Held:
    """A table's metadata as it was read. The catalog compares a commit with `version`, in the catalog's own terms."""

    metadata: dict[str, Any]
    version: Any


@dataclass(frozen=True, slots=True)
class Fence:
    """The tag that a settler adds."""

    name: str
    snapshot_id: int
    max_ref_age_ms: int

    @property
    def tag(self) -> dict[str, Any]:
        """The tag as it stands in metadata and in REST requests."""
        return {"snapshot-id": self.snapshot_id, "type": "tag", "max-ref-age-ms": self.max_ref_age_ms}


def table_uuid(metadata: Mapping[str, Any]) -> str | None:
    """Return the table's id; None if it has none, which only format version 1 allows."""
    return metadata.get("table-uuid")


def properties(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the table's properties."""
    return metadata.get("properties") or {}


def references(metadata: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return branches and tags by their names; main alone if the metadata has no `refs`, as in old version 1."""
    found: dict[str, dict[str, Any]] | None = metadata.get("refs")
    if found is not None:
        return found
    head = metadata.get("current-snapshot-id")
    return {} if head in (None, -1) else {_MAIN: {"snapshot-id": head, "type": "branch"}}


def head_of(metadata: Mapping[str, Any], reference: str) -> int | None:
    """Return the snapshot that a branch or tag shows; None if there is no such reference."""
    found = references(metadata).get(reference)
    return None if found is None else int(found["snapshot-id"])


@dataclass(frozen=True, slots=True)
class MetadataFile:
    """A metadata file as it was read; `spans` tells where in its text the value of each field stands."""

    location: str
    metadata: dict[str, Any]
    text: str
    spans: dict[str, tuple[int, int]]
    is_gzip: bool

    @classmethod
    def read(cls, location: str, table_store: Callable[[str], ObjectStore]) -> MetadataFile:
        """Read the file at a location, plain or compressed."""
        text, is_gzip = _read(location, table_store)
        return cls(location, *_parsed(text), is_gzip)

    def write_fenced(self, fence: Fence, table_store: Callable[[str], ObjectStore]) -> str:
        """Write the next metadata file, with the fence, beside this one, named as catalogs do; return its location."""
        folder, _, name = self.location.rpartition("/")
        version = _VERSION.match(name)
        ending = f"{'.gz' if self.is_gzip else ''}.metadata.json"
        location = f"{folder}/{int(version[1]) + 1 if version else 0:05d}-{uuid.uuid4()}{ending}"
        body = self._changed(self._fenced(fence)).encode()
        where = Location.parse(location)
        table_store(str(Location(where.bucket))).put(where.key, gzip.compress(body) if self.is_gzip else body)
        return location

    def _fenced(self, fence: Fence) -> dict[str, Any]:
        before_ms = self.metadata["last-updated-ms"]
        log = [*(self.metadata.get("metadata-log") or ()), {"timestamp-ms": before_ms, "metadata-file": self.location}]
        kept = max(1, int(properties(self.metadata).get(*_PREVIOUS)))
        return {
            "refs": {**references(self.metadata), fence.name: fence.tag},
            "last-updated-ms": max(before_ms, int(time.time() * 1000)),
            "metadata-log": log[-kept:],
        }

    def _changed(self, fields: Mapping[str, Any]) -> str:
        """Return the text with new values of some fields; a field that the text lacks goes to its end."""
        pieces, at = [], 0
        for name, (start, end) in self.spans.items():
            if name in fields:
                pieces += [self.text[at:start], _written(fields[name])]
                at = end
        end = max(end for _, end in self.spans.values())
        more = (f",{_written(name)}:{_written(value)}" for name, value in fields.items() if name not in self.spans)
        return "".join((*pieces, self.text[at:end], *more, self.text[end:]))


def _read(location: str, table_store: Callable[[str], ObjectStore]) -> tuple[str, bool]:
    where = Location.parse(location)
    found = table_store(str(Location(where.bucket))).get(where.key)
    if found is None:
        raise StoreError(f"the metadata file {location} is not there, or cannot be read")
    is_gzip = found.body.startswith(_GZIP)
    return (gzip.decompress(found.body) if is_gzip else found.body).decode(), is_gzip


def _written(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _parsed(text: str) -> tuple[dict[str, Any], str, dict[str, tuple[int, int]]]:
    """Parse an object; return its fields, the text, and where in it the value of each field stands."""
    decode = json.JSONDecoder().raw_decode
    fields: dict[str, Any] = {}
    spans: dict[str, tuple[int, int]] = {}
    at = _after(_OPEN, text, 0)
    while True:
        name, at = decode(text, at)
        if name in fields:
            raise ValueError(f"the field {name!r} stands twice in one object")
        start = _after(_COLON, text, at)
        fields[name], at = decode(text, start)
        spans[name] = (start, at)
        comma = _COMMA.match(text, at)
        if comma is None:
            break
        at = comma.end()
    if _after(_CLOSE, text, at) != len(text):
        raise ValueError(f"more than one object: a second begins at character {at + 1}")
    return fields, text, spans


def _after(sign: re.Pattern[str], text: str, at: int) -> int:
    found = sign.match(text, at)
    if found is None:
        raise ValueError(f"no JSON object: {sign.pattern!r} is missing at character {at}")
    return found.end()
