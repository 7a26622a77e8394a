"""The leftovers of an Iceberg table: files in its folder that no snapshot names, and the fences that SafeWriter set.

This module deletes nothing. The report contains the Spark SQL statements that delete. Its schema is published as
`iceberg.schema.json` beside this file; `python -m soal.orphans.iceberg` prints it.

`ObjectFileIO` lets pyiceberg read metadata files through SoAL's object store: pyiceberg's own S3 clients are pyarrow
(170 MB) and s3fs. Metadata files are small, and each is read as a whole.
"""

from __future__ import annotations

import gzip
import io
import zlib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from pydantic import Field
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile
from pyiceberg.utils.config import Config

from handler.json_document import schema_text
from safewriter.identity import ATTEMPT
from safewriter.objects import s3
from safewriter.objects.location import Location
from safewriter.objects.s3 import S3ObjectStore
from safewriter.objects.store import TooLarge
from safewriter.parsing import parsed
from safewriter.tables.delta.leftovers import table_of
from safewriter.tables.iceberg.name import TableName
from safewriter.tables.iceberg.space import TEXT_MAX_BYTES
from soal.console.document import Part
from soal.console.problem import Failure
from soal.orphans.report import Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mypy_boto3_s3 import S3Client
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyiceberg.typedef import Properties

    from safewriter.objects import ListedObject
    from safewriter.objects.store import ObjectStore

_KEPT: Final = timedelta(days=7)
"""How long Iceberg keeps a fence after a settler has set it: `safewriter/tables/iceberg/table.py`."""
_LEAST: Final = timedelta(days=1)
"""`remove_orphan_files` refuses to delete younger files."""
_METADATA: Final = (".metadata.json", ".metadata.json.gz")
_OWN: Final = ("", "iceberg")
_GZIP: Final = b"\x1f\x8b"
_PARALLEL: Final = 8


class _Input(InputFile):
    def __init__(self, location: str, table_store: Callable[[str], ObjectStore]) -> None:
        super().__init__(location)
        place = Location.parse(location)
        self._read = partial(table_store(str(Location(place.bucket))).get, place.key)

    def __len__(self) -> int:
        return len(self._body())

    def _body(self) -> bytes:
        stored = self._read()
        if stored is None:
            raise FileNotFoundError(f"{self.location} does not exist, or cannot be read")
        return stored.body

    def exists(self) -> bool:
        return self._read() is not None

    def open(self, seekable: bool = True) -> InputStream:  # noqa: ARG002, FBT001, FBT002 - pyiceberg's signature
        return cast("InputStream", io.BytesIO(self._body()))


class ObjectFileIO(FileIO):
    """pyiceberg's reads through an object store, loaded by `py-io-impl`. `table_store` opens a store by URI."""

    def __init__(self, properties: Properties, table_store: Callable[[str], ObjectStore] | None = None) -> None:
        super().__init__(properties)
        self.table_store = table_store or s3.table_store

    def new_input(self, location: str) -> InputFile:
        return _Input(location, self.table_store)

    def new_output(self, location: str) -> OutputFile:
        raise io.UnsupportedOperation(f"{location} is only read here")

    def delete(self, location: Any) -> None:  # noqa: ANN401 - pyiceberg's signature
        raise io.UnsupportedOperation(f"{location} is only read here")


OBJECT_IO: Final = {"py-io-impl": f"{ObjectFileIO.__module__}.{ObjectFileIO.__qualname__}"}
"""The property that makes a pyiceberg catalog use `ObjectFileIO`."""


def catalog_of(
    name: str, properties: Mapping[str, str], table_store: Callable[[str], ObjectStore] | None = None
) -> Catalog:
    """Open a pyiceberg catalog that reads files by `ObjectFileIO`, whatever a table's properties say.

    In pyiceberg a table's properties override the catalog's: `py-io-impl` could name any class, which pyiceberg imports
    and calls with the catalog's credentials, and `s3.endpoint` any server.
    """
    catalog = load_catalog(name, **{**properties, **OBJECT_IO})

    def file_io(*_: object, **__: object) -> FileIO:
        return ObjectFileIO(catalog.properties, table_store)

    catalog._load_file_io = file_io  # type: ignore[method-assign]  # noqa: SLF001 - pyiceberg has no hook for it
    return catalog


class IcebergOrphan(Part):
    """A file below the table's location that no snapshot names and that is older than `older_than_s`."""

    path: str
    bytes: int
    last_modified: datetime


class Fence(Part):
    """A tag that a settler has set, so that a dead attempt can no longer publish its write."""

    name: str = Field(description="the attempt's name")
    snapshot_id: int
    made: datetime
    expires: datetime = Field(description="after this time nothing needs the tag, and expire_snapshots removes it")


class IcebergReport(Part):
    """File dates and `now` are by S3's clock, fence dates by the settler's clock."""

    schema_version: Literal[1] = 1
    table: str
    location: str
    now: datetime
    older_than_s: int
    orphans: tuple[IcebergOrphan, ...]
    retained: Tally = Field(description="files that the table's metadata names")
    young: Tally = Field(description="files that it does not name, younger than older_than_s")
    other_tables: tuple[str, ...] = Field(
        description="folders of other tables, left alone. The table's own folder is listed if another table shares it"
    )
    fences: tuple[Fence, ...]
    statements: tuple[str, ...] = Field(
        description="Spark SQL that removes the expired fences, and the orphans, unless the folder holds other tables"
    )


def look(
    client: S3Client,
    name: TableName,
    older_than: timedelta,
    progress: Callable[[int], None],
    catalog: Mapping[str, str] | None = None,
) -> IcebergReport:
    """Survey a table of a catalog; call `progress` with the number of files listed.

    pyiceberg's variables configure the catalog; the properties in `catalog` override them.

    The listing comes before the metadata: if another writer commits a listed file meanwhile, the metadata names it.
    """
    place = Location.parse(_load(client, name, catalog or {}).metadata.location)
    store = S3ObjectStore(client, place.bucket, place.key)
    objects = [entry for entry in store.list("") if not entry.key.endswith("/")]
    progress(len(objects))
    table = _load(client, name, catalog or {})
    file = Location.parse(table.metadata_location)
    stored = S3ObjectStore(client, file.bucket).get(file.key)
    if stored is None:
        raise Failure(f"{file} does not exist", todo="run the command again")
    now, references = stored.server_date, referred(table)
    others = tuple(sorted(_others(store, objects, references, str(table.metadata.table_uuid))))
    unnamed = [e for e in objects if store.uri(e.key) not in references and not e.key.startswith(others)]
    old = [entry for entry in unnamed if entry.last_modified < now - older_than]
    fences = tuple(_fences(table))
    # Iceberg's procedure can leave no folder out, and a bucket's root may hold other objects.
    can_remove = bool(old) and not others and place.key != ""
    return IcebergReport(
        table=str(name),
        location=str(place),
        now=now,
        older_than_s=int(older_than.total_seconds()),
        orphans=tuple(
            IcebergOrphan(path=store.uri(file.key), bytes=file.size, last_modified=file.last_modified) for file in old
        ),
        retained=_tally(entry for entry in objects if store.uri(entry.key) in references),
        young=_tally(entry for entry in unnamed if entry.last_modified >= now - older_than),
        other_tables=tuple(store.uri(root) for root in others),
        fences=fences,
        statements=tuple(_statements(name, fences, now, now - max(older_than, _LEAST) if can_remove else None)),
    )


def _others(store: ObjectStore, objects: Iterable[ListedObject], references: set[str], uuid: str) -> set[str]:
    """Return the folders of other tables below this one's; "", which all keys begin with, if one shares its folder.

    Nothing tells whose the files of a shared folder are. Metadata files that the table itself does not name are mostly
    its own older ones, so each is read for the table's id.
    """
    roots, unnamed = set(), []
    for entry in objects:
        if (table := table_of(entry.key)) is not None and table != _OWN:
            roots.add(table[0])
        elif entry.key.endswith(_METADATA) and store.uri(entry.key) not in references:
            unnamed.append(entry.key)
    if "" not in roots:
        with ThreadPoolExecutor(_PARALLEL) as pool:
            if any(pool.map(lambda key: _is_of_another(store, key, uuid), unnamed)):
                roots.add("")
    return roots


def _is_of_another(store: ObjectStore, key: str, uuid: str) -> bool:
    """Return whether a metadata file is of another table; True also if that cannot be told."""
    try:
        stored = store.get(key, max_bytes=TEXT_MAX_BYTES)
        if stored is None:
            return False
        is_gzip = stored.body.startswith(_GZIP)
        with gzip.open(io.BytesIO(stored.body)) if is_gzip else io.BytesIO(stored.body) as file:
            document = parsed(file.read(TEXT_MAX_BYTES))
    except (TooLarge, ValueError, OSError, EOFError, zlib.error):
        return True
    return not isinstance(document, dict) or str(document.get("table-uuid")).lower() != uuid


def referred(table: Table) -> set[str]:
    """Return all files that any snapshot in the table's metadata names, as `s3://` URIs."""
    paths = {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
    for snapshot in table.metadata.snapshots:
        paths.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            if manifest.manifest_path not in paths:  # many snapshots share one
                paths.add(manifest.manifest_path)
                paths |= {entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io)}
    paths |= {entry.statistics_path for entry in (*table.metadata.statistics, *table.metadata.partition_statistics)}
    return {str(Location.parse(path)) for path in paths}


def _tally(objects: Iterable[ListedObject]) -> Tally:
    sizes = [entry.size for entry in objects]
    return Tally(files=len(sizes), bytes=sum(sizes))


def _statements(name: TableName, fences: tuple[Fence, ...], now: datetime, before: datetime | None) -> Iterator[str]:
    if before is not None:
        table = str(TableName(name.catalog, name.identifier)).partition(".")[2]
        yield (
            f"CALL {name.catalog}.system.remove_orphan_files(table => '{table}',"
            f" older_than => TIMESTAMP '{before:%Y-%m-%d %H:%M:%S}Z')"
        )
    yield from (f"ALTER TABLE {name.quoted} DROP TAG `{fence.name}`" for fence in fences if fence.expires < now)


def _fences(table: Table) -> Iterator[Fence]:
    for name, reference in table.metadata.refs.items():
        snapshot = table.snapshot_by_id(reference.snapshot_id)
        if ATTEMPT.fullmatch(name) and snapshot is not None and reference.max_ref_age_ms is not None:
            expires = datetime.fromtimestamp((snapshot.timestamp_ms + reference.max_ref_age_ms) / 1000, UTC)
            yield Fence(name=name, snapshot_id=snapshot.snapshot_id, made=expires - _KEPT, expires=expires)


def _load(client: S3Client, name: TableName, catalog: Mapping[str, str]) -> Table:
    def table_store(uri: str) -> ObjectStore:
        return S3ObjectStore(client, Location.parse(uri).bucket)

    try:
        properties: dict[str, Any] = {**(Config().get_catalog_config(name.catalog) or {}), **catalog}
        return catalog_of(name.catalog, properties, table_store).load_table(name.identifier)
    except (NoSuchTableError, NoSuchNamespaceError) as error:
        raise Failure(f"{name} does not exist", todo="check its name") from error
    except Exception as error:  # each kind of catalog raises its own errors: databases, HTTP, AWS
        raise Failure(
            f"{name} cannot be read: {error}",
            todo=f"name the catalog in pyiceberg's variables: PYICEBERG_CATALOG__{name.catalog.upper()}__URI and more",
        ) from error


if __name__ == "__main__":
    print(schema_text(IcebergReport), end="")
