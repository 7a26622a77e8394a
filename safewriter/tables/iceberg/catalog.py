"""A catalog's tables, loaded and committed to without a JVM: one pointer for each, changed under requirements only."""

from __future__ import annotations

import functools
import json
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table.update import update_table_metadata
from pyiceberg.utils.config import Config

from safewriter.errors import SafeWriterError
from safewriter.objects.location import Location
from safewriter.objects.store import StoreError
from safewriter.parsing import parsed
from safewriter.tables.iceberg.fileio import ObjectFileIO, written_files
from safewriter.tables.iceberg.metadata_files import is_known, is_over, read_metadata
from safewriter.tables.iceberg.settings import to_pyiceberg
from safewriter.tables.table import RetentionGapError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyiceberg.table.update import TableRequirement, TableUpdate

    from safewriter.objects.store import ObjectStore
    from safewriter.tables.iceberg.name import TableName
    from safewriter.tables.rehearsal import Rehearsal

__all__ = ["OneTable"]

_T = TypeVar("_T")


@functools.lru_cache(maxsize=8)
def _catalog(name: str, properties: tuple[tuple[str, str], ...], environment: str) -> Catalog:
    return load_catalog(name, **{**parsed(environment), **to_pyiceberg(name, dict(properties))})


def _of_environment(name: str) -> str:
    """Return what pyiceberg's own variables say of a catalog now, as JSON.

    pyiceberg reads them once, when it is imported: a password that has been rotated since would never be used.
    """
    return json.dumps(Config().get_catalog_config(name) or {}, sort_keys=True)


class OneTable:
    """One table of a catalog. `properties` are those of the session or of a checkpoint, in Iceberg's own words.

    `table_store` opens an object store by its `s3://` URI. With a `rehearsal` commits are made there only.
    """

    def __init__(
        self,
        name: TableName,
        properties: Mapping[str, str],
        table_store: Callable[[str], ObjectStore],
        rehearsal: Rehearsal | None = None,
    ) -> None:
        self.name = name
        self._properties = tuple(sorted(properties.items()))
        self._table_store = table_store
        self._rehearsal = rehearsal
        self._lost: list[str] = []

    def load(self, table_id: str | None = None) -> Table:
        """Return the table as it is now. Raises `RetentionGapError` if it is gone or another one than `table_id`."""
        try:
            table = self._asked("load", lambda: self._opened().load_table(self.name.identifier))
        except (NoSuchTableError, NoSuchNamespaceError) as error:
            raise RetentionGapError(f"the table {self.name} was dropped: {error}") from error
        found = str(table.metadata.table_uuid)
        if table_id is not None and found != table_id:
            raise RetentionGapError(f"the table was dropped and recreated: its id is {found}, it was {table_id}")
        table.io = ObjectFileIO(table.io.properties, self._table_store)
        if self._rehearsal is not None:
            table.metadata = self._rehearsal.metadata.get(str(self.name), table.metadata)
        self._delete_lost(table)
        return table

    def store(self, place: Location) -> ObjectStore:
        """Return the store of the bucket that a file or folder of the table lies in; its keys are whole ones."""
        return self._table_store(str(Location(place.bucket)))

    def commit(self, table: Table, requirements: list[TableRequirement], updates: list[TableUpdate]) -> bool:
        """Change the table if all the requirements hold; False if one does not, or if another commit came first.

        `StoreError` leaves open whether it was changed: load it again.
        """
        if self._rehearsal is not None:
            return self._rehearsed(self._rehearsal, table, requirements, updates)
        with written_files() as written:
            try:
                self._asked("commit", lambda: self._opened().commit_table(table, tuple(requirements), tuple(updates)))
            except CommitFailedException:
                self._lost += written
                return False
            except (NoSuchTableError, NoSuchNamespaceError) as error:
                raise RetentionGapError(f"the table {self.name} was dropped: {error}") from error
        return True

    def _delete_lost(self, table: Table) -> None:
        """Delete the metadata files of commits that others were before, which a catalog leaves where they are."""
        lost, self._lost = self._lost, []
        with suppress(StoreError):  # hygiene only
            for path in lost:
                metadata = None if is_known(table, path) else read_metadata(table, path)
                if metadata is not None and is_over(table, metadata):
                    table.io.delete(path)

    def _rehearsed(
        self, rehearsal: Rehearsal, table: Table, requirements: list[TableRequirement], updates: list[TableUpdate]
    ) -> bool:
        try:
            for requirement in requirements:
                requirement.validate(table.metadata)
        except CommitFailedException:
            return False
        rehearsal.metadata[str(self.name)] = update_table_metadata(table.metadata, tuple(updates))
        rehearsal.changes.append(f"COMMIT {self.name}: {', '.join(update.action for update in updates)}")
        return True

    def _opened(self) -> Catalog:
        return _catalog(self.name.catalog, self._properties, _of_environment(self.name.catalog))

    def _asked(self, what: str, request: Callable[[], _T]) -> _T:
        try:
            return request()
        except (CommitFailedException, NoSuchTableError, NoSuchNamespaceError, SafeWriterError, StoreError):
            raise
        except Exception as error:  # each catalog has errors of its own: databases, HTTP, AWS
            raise StoreError(f"{what} {self.name} in catalog {self.name.catalog!r}: {error!r}") from error
