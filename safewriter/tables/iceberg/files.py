"""The pointer of a catalog that keeps no metadata itself: it holds the location of the table's metadata file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from safewriter.tables.iceberg.metadata import Fence, Held, MetadataFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.objects.store import ObjectStore
    from safewriter.tables.iceberg.name import TableName

__all__ = ["FilePointer"]


class FilePointer(ABC):
    """One table. Its version is the location of its metadata file: no two metadata files have one name."""

    def __init__(self, name: TableName, opened: Callable[[], Any], table_store: Callable[[str], ObjectStore]) -> None:
        self._name = name
        self._opened = opened
        self._table_store = table_store

    def read(self) -> Held | None:
        location = self._location()
        if location is None:
            return None
        file = MetadataFile.read(location, self._table_store)
        return Held(file.metadata, file)

    def commit(self, held: Held, fence: Fence) -> bool:
        return self._swap(held.version.location, held.version.write_fenced(fence, self._table_store))

    @abstractmethod
    def _location(self) -> str | None:
        """Return where the table's metadata is; None if there is no such table of Iceberg's."""

    @abstractmethod
    def _swap(self, old: str, new: str) -> bool:
        """Set the location if it is still the old one; else return False."""
