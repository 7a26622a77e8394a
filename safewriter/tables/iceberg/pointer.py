"""A catalog's pointer to a table's metadata. Settlers read and move it without a JVM; their one commit sets a fence.

pyiceberg only connects and logs in here. Its models of metadata refuse values that they do not know, drop fields that
they do not have, and take seconds for ten thousand snapshots.
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pyiceberg.catalog import load_catalog
from pyiceberg.utils.config import Config

from safewriter.errors import SafeWriterError, UnsupportedError
from safewriter.objects.store import StoreError
from safewriter.parsing import parsed
from safewriter.tables.iceberg.glue import GluePointer
from safewriter.tables.iceberg.metadata import Fence, Held, references
from safewriter.tables.iceberg.rest import RestPointer
from safewriter.tables.iceberg.settings import to_pyiceberg
from safewriter.tables.iceberg.sql import SqlPointer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyiceberg.catalog import Catalog

    from safewriter.objects.store import ObjectStore
    from safewriter.tables.iceberg.name import TableName
    from safewriter.tables.rehearsal import Rehearsal

__all__ = ["Fence", "Held", "Pointer", "open_pointer"]

_T = TypeVar("_T")


class Pointer(Protocol):
    """One table of a catalog. Either method may raise `StoreError`."""

    def read(self) -> Held | None:
        """Return the table as it is now; None if there is none."""
        ...

    def commit(self, held: Held, fence: Fence) -> bool:
        """Add the fence; return False if the catalog refused it, since another commit was first.

        After a `StoreError` nobody knows whether the catalog added it: read again.
        """
        ...


def open_pointer(
    name: TableName,
    properties: Mapping[str, str],
    table_store: Callable[[str], ObjectStore],
    rehearsal: Rehearsal | None = None,
) -> Pointer:
    """Open a table by the properties of a session or of a checkpoint, in Iceberg's own words.

    `table_store` opens an object store by its `s3://` URI. With a `rehearsal` the pointer commits there only. Raises
    `UnsupportedError` if the properties do not say of which kind the catalog is.
    """
    reached = tuple(sorted(properties.items()))

    def opened() -> Any:  # noqa: ANN401 - each kind of catalog has a class of its own
        return _catalog(name.catalog, reached, _of_environment(name.catalog))

    kind = properties.get("type")
    if kind is None:
        raise UnsupportedError(f"nothing says how the catalog {name.catalog!r} of {name} is reached")
    if kind == "rest":
        return _CatalogPointer(name, RestPointer(name, opened), rehearsal)
    files = GluePointer if kind == "glue" else SqlPointer
    return _CatalogPointer(name, files(name, opened, table_store), rehearsal)


@functools.lru_cache(maxsize=8)
def _catalog(name: str, properties: tuple[tuple[str, str], ...], environment: str) -> Catalog:
    return load_catalog(name, **{**parsed(environment), **to_pyiceberg(name, dict(properties))})


def _of_environment(name: str) -> str:
    """Return the catalog's properties in pyiceberg's own variables now, as JSON.

    pyiceberg reads its variables once, at its import. It would never use a password that somebody rotated since then.
    """
    return json.dumps(Config().get_catalog_config(name) or {})


class _CatalogPointer:
    """A pointer whose errors name their catalog. With a rehearsal it commits there only."""

    def __init__(self, name: TableName, pointer: Pointer, rehearsal: Rehearsal | None) -> None:
        self._name = name
        self._pointer = pointer
        self._rehearsal = rehearsal

    def read(self) -> Held | None:
        held = self._asked("read", self._pointer.read)
        if held is None or self._rehearsal is None:
            return held
        return Held(self._rehearsal.metadata.get(self._name.table, held.metadata), held.version)

    def commit(self, held: Held, fence: Fence) -> bool:
        known = references(held.metadata)
        if fence.name in known:
            return False
        if self._rehearsal is None:
            return self._asked("fence", lambda: self._pointer.commit(held, fence))
        self._rehearsal.metadata[self._name.table] = {**held.metadata, "refs": {**known, fence.name: fence.tag}}
        self._rehearsal.changes.append(f"COMMIT {self._name.table}: tag {fence.name} on snapshot {fence.snapshot_id}")
        return True

    def _asked(self, what: str, request: Callable[[], _T]) -> _T:
        try:
            return request()
        except (SafeWriterError, StoreError):
            raise
        except Exception as error:  # each catalog has errors of its own: databases, HTTP, AWS
            raise StoreError(f"{what} {self._name} in catalog {self._name.catalog!r}: {error!r}") from error
