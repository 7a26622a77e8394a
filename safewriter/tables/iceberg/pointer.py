"""A catalog's pointer to a table's metadata. Settlers read and move it without a JVM; their one commit sets a fence.

pyiceberg only connects and logs in here. Its models of metadata refuse values that they do not know, drop fields that
they do not have, and take seconds for ten thousand snapshots.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from safewriter.errors import SafeWriterError
from safewriter.objects.rights import lacking
from safewriter.objects.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.tables.iceberg.metadata import FenceTag, LiveTable
    from safewriter.tables.iceberg.name import TableName

__all__ = ["Pointer", "UnreachedPointer"]

_T = TypeVar("_T")


@dataclass(frozen=True)
class Pointer(ABC):
    """One table of a catalog. `opened` returns pyiceberg's catalog, or SQLAlchemy's engine of a database.

    Either method may raise `StoreError`.
    """

    name: TableName
    opened: Callable[[], Any]

    def read(self) -> LiveTable | None:
        """Return the table as it is now; None if there is none."""
        return self._ask("read", self._read)

    def commit(self, table: LiveTable, fence: FenceTag) -> bool:
        """Add the fence; return False if the catalog refused it, since another commit was first.

        After a `StoreError` it is unknown whether the catalog added it: read again.
        """
        return self._ask("fence", lambda: self._commit(table, fence))

    @abstractmethod
    def _read(self) -> LiveTable | None: ...

    @abstractmethod
    def _commit(self, table: LiveTable, fence: FenceTag) -> bool: ...

    def _ask(self, verb: str, request: Callable[[], _T]) -> _T:
        try:
            return request()
        except SafeWriterError:
            raise
        except Exception as error:  # each catalog has errors of its own: databases, HTTP, AWS
            right = lacking(error, "glue", "the catalog, its database and the table")
            raise StoreError(f"{verb} {self.name} in catalog {self.name.catalog!r}: {error!r}{right}") from error


class UnreachedPointer(Pointer):
    """A table of a catalog that the settler cannot reach; `opened` returns the reason. Some verdicts need no table."""

    def _read(self) -> LiveTable | None:
        raise self.opened()

    def _commit(self, table: LiveTable, fence: FenceTag) -> bool:  # noqa: ARG002 - as above
        raise self.opened()
