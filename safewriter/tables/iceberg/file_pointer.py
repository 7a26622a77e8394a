"""The pointer of a catalog that keeps no metadata itself: it holds the location of the table's metadata file.

A fence replaces values in the text of that file. All other text stays as it was, to the byte: fields that this module
does not know, and numbers that Python would write differently.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import time
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from safewriter.bounds import short
from safewriter.entropy import unique_id
from safewriter.objects.location import Location
from safewriter.objects.store import StoreError
from safewriter.tables.iceberg.metadata import FenceTag, LiveTable, properties, references
from safewriter.tables.iceberg.pointer import Pointer
from safewriter.tables.iceberg.space import TEXT_MAX_BYTES, check_space, keep, kept

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from safewriter.objects.store import ObjectStore

__all__ = ["FilePointer"]

_GZIP: Final = b"\x1f\x8b"
_PREVIOUS: Final = ("write.metadata.previous-versions-max", 100)  # Iceberg's property and its default
_VERSION: Final = re.compile(r"(\d+)-")
_FIELD: Final = re.compile(r'\s*([{,])\s*(?=")')
_COLON: Final = re.compile(r"\s*:\s*")
_END: Final = re.compile(r"\s*\}\s*")


@dataclass(frozen=True)
class FilePointer(Pointer):
    """One table. Its version is the metadata file that was read: no two metadata files have the same name."""

    table_store: Callable[[str], ObjectStore]

    def _read(self) -> LiveTable | None:
        location = self._location()
        return None if location is None else kept(location, lambda: self._file(location))

    def _file(self, location: str) -> LiveTable:
        store, key = self._store(location)
        stored = store.get(key, max_bytes=TEXT_MAX_BYTES)
        if stored is None:
            raise StoreError(f"the metadata file {location} is not there, or cannot be read")
        is_gzip = stored.body.startswith(_GZIP)
        body = _unzipped(location, stored.body) if is_gzip else stored.body
        check_space(location, body)
        return _parsed(location, body.decode(), is_gzip=is_gzip).table

    def _commit(self, table: LiveTable, fence: FenceTag) -> bool:
        file: _File = table.version
        fenced = file.fenced(fence)
        store, key = self._store(fenced.location)
        body = fenced.text.encode()
        store.put(key, gzip.compress(body) if file.is_gzip else body)
        if not self._swap(file.location, fenced.location):
            return False
        keep(fenced.location, fenced.table)
        return True

    def _store(self, location: str) -> tuple[ObjectStore, str]:
        where = Location.parse(location)
        return self.table_store(str(Location(where.bucket))), where.key

    @abstractmethod
    def _location(self) -> str | None:
        """Return the location of the table's metadata file; None if there is no such Iceberg table."""

    @abstractmethod
    def _swap(self, old: str, new: str) -> bool:
        """Set the location if it is still the old one; else return False."""


@dataclass(frozen=True, slots=True)
class _File:
    """A metadata file as it was read; `spans`: begin and end of the value of each field in the text."""

    location: str
    is_gzip: bool
    text: str
    metadata: dict[str, Any]
    spans: dict[str, tuple[int, int]]

    @property
    def table(self) -> LiveTable:
        """The table, if the catalog names this file."""
        return LiveTable(self.metadata, self, self.location)

    def next_location(self) -> str:
        """Return a location for the next metadata file beside this one, named as catalogs do."""
        folder, _, name = self.location.rpartition("/")
        version = _VERSION.match(name)
        ending = f"{'.gz' if self.is_gzip else ''}.metadata.json"
        return f"{folder}/{int(version[1]) + 1 if version else 0:05d}-{UUID(unique_id(), version=4)}{ending}"

    def fenced(self, fence: FenceTag) -> _File:
        """Return the next metadata file, with the fence."""
        before_ms = self.metadata["last-updated-ms"]
        log = [*(self.metadata.get("metadata-log") or ()), {"timestamp-ms": before_ms, "metadata-file": self.location}]
        log_max = max(1, int(properties(self.metadata).get(*_PREVIOUS)))
        return self._changed(
            {
                "refs": {**references(self.metadata), fence.name: fence.tag},
                "last-updated-ms": max(before_ms, int(time.time() * 1000)),
                "metadata-log": log[-log_max:],
            }
        )

    def _changed(self, fields: Mapping[str, Any]) -> _File:
        """Return the next file, with new values of some fields; a field that the text lacks goes to its end."""
        pieces: list[str] = []
        spans: dict[str, tuple[int, int]] = {}
        at = length = 0
        for name in (*self.spans, *(name for name in fields if name not in self.spans)):
            start, end = self.spans.get(name, (at, at))
            value = _written(fields[name]) if name in fields else self.text[start:end]
            before = self.text[at:start] if name in self.spans else f",{_written(name)}:"
            spans[name] = (length + len(before), length + len(before) + len(value))
            pieces += (before, value)
            at, length = end, spans[name][1]
        text = "".join((*pieces, self.text[at:]))
        return _File(self.next_location(), self.is_gzip, text, {**self.metadata, **fields}, spans)


def _unzipped(location: str, body: bytes) -> bytes:
    with gzip.GzipFile(fileobj=io.BytesIO(body)) as file:
        text = file.read(TEXT_MAX_BYTES + 1)
    if len(text) > TEXT_MAX_BYTES:
        raise StoreError(f"the metadata file {location} expands to more than {TEXT_MAX_BYTES:,} bytes")
    return text


def _written(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _parsed(location: str, text: str, *, is_gzip: bool) -> _File:
    """Parse an object field by field. Raises `ValueError` if the text is no object, or names a field twice."""
    decode = json.JSONDecoder().raw_decode
    file = _File(location, is_gzip, text, {}, {})
    at = 0
    while (field := _FIELD.match(text, at)) and field[1] == ("," if file.spans else "{"):
        name, end = decode(text, field.end())
        if (colon := _COLON.match(text, end)) is None:
            break
        start = colon.end()
        if name in file.spans:
            raise ValueError(f"the field {short(name)} stands twice in one object")
        file.metadata[name], at = decode(text, start)
        file.spans[name] = (start, at)
    if not file.spans or _END.fullmatch(text, at) is None:
        raise ValueError(f"the text is not one JSON object: character {at} is not expected")
    return file
