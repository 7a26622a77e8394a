"""The tables of the experiment: created and read by deltalake and pyiceberg, never by the Spark that writes to them."""

from __future__ import annotations

import io
import os
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import TableNotFoundError

from safewriter.objects.location import Location
from safewriter.tables.iceberg.catalogs import to_pyiceberg
from scripts.tables import delta, iceberg
from soal.testing.s3.rules import Match
from tests.lab.bench.catalog import CATALOG, of_file, settings
from tests.support.iceberg_writer import open_catalog

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import pyarrow as pa
    from mypy_boto3_s3 import S3Client

    from scripts.tables.delta import TableView
    from tests.lab.experiment.plan import Format, KillPhase

__all__ = ["LAKE", "ExperimentTable", "Place", "source_uri", "table_of"]

LAKE: Final = "experiment-lake"
_ONE_SLASH: Final = re.compile(r"^s3a?:/+")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run's table is: an S3, a folder there, and a local one. `aws`: the variables that reach the S3."""

    client: S3Client
    aws: Mapping[str, str]
    prefix: str
    folder: Path


class ExperimentTable(ABC):
    """A table of one run."""

    name: str
    """As Spark names it."""
    settings: Mapping[str, str] = {}
    """Settings of the session that finds the table."""
    first_metadata: Match
    """The first request of a commit: before it the data is stored, but unreferenced."""
    commit: Match
    """The request that publishes the data, or the last one to S3 before that."""

    def __init__(self, place: Place) -> None:
        self._place = place

    @abstractmethod
    def make(self, base: pa.Table) -> None:
        """Create the table, with its first rows."""

    @abstractmethod
    def view(self) -> TableView:
        """Read it."""

    @abstractmethod
    def rows(self) -> int:
        """Count the rows in the data files themselves: statistics are only the writer's claim."""

    @abstractmethod
    def ids(self) -> tuple[int, ...]:
        """Read the column `id`, sorted."""

    def boundary(self, phase: KillPhase) -> Match:
        """Return the request at which a run is killed."""
        return self.first_metadata if phase == "data" else self.commit

    def size_of(self, keys: tuple[str, ...]) -> int:
        """Return the total size of objects, in bytes."""
        return sum(self._place.client.head_object(Bucket=LAKE, Key=key)["ContentLength"] for key in keys)


class _Delta(ExperimentTable):
    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.name = f"s3a://{LAKE}/{place.prefix}"
        log = rf"^{place.prefix}/_delta_log/\d{{20}}\.json$"
        self.first_metadata = self.commit = Match(operations={"PutObject"}, bucket=LAKE, key=log)

    def make(self, base: pa.Table) -> None:
        write_deltalake(f"s3://{LAKE}/{self._place.prefix}", base, storage_options=delta.options(self._place.aws))

    def view(self) -> TableView:
        return delta.view(self._place.client, LAKE, self._place.prefix, self._place.aws)

    def rows(self) -> int:
        return sum(pq.read_metadata(file).num_rows for file in self._files())

    def ids(self) -> tuple[int, ...]:
        return tuple(
            sorted(id_ for file in self._files() for id_ in pq.read_table(file, columns=["id"])["id"].to_pylist())
        )

    def _files(self) -> Iterator[io.BytesIO]:
        try:
            table = DeltaTable(f"s3://{LAKE}/{self._place.prefix}", storage_options=delta.options(self._place.aws))
        except TableNotFoundError:
            return
        for uri in table.file_uris():
            # deltalake's own reader holds the interpreter's lock, which would block an S3 in this process.
            key = Location.parse(_ONE_SLASH.sub("s3://", uri)).key
            yield io.BytesIO(self._place.client.get_object(Bucket=LAKE, Key=key)["Body"].read())


class _Iceberg(ExperimentTable):
    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.name = f"{CATALOG}.db.t"
        own = of_file(place.folder, f"s3a://{LAKE}/{place.prefix}")
        self.settings = settings(own)
        self._catalog = open_catalog(CATALOG, own)
        self._properties = to_pyiceberg(CATALOG, own)
        os.environ[f"PYICEBERG_CATALOG__{CATALOG.upper()}__URI"] = self._properties["uri"]  # by which settlers reach it
        metadata = rf"^{place.prefix}/.*/metadata/"
        self.first_metadata = Match(operations={"PutObject"}, bucket=LAKE, key=metadata)
        self.commit = Match(operations={"PutObject"}, bucket=LAKE, key=rf"{metadata}[^/]+\.metadata\.json$")

    def make(self, base: pa.Table) -> None:
        self._catalog.create_table("db.t", schema=base.schema).append(base)

    def view(self) -> TableView:
        return iceberg.view(self._place.client, self._properties, self.name)

    def rows(self) -> int:
        table = self._catalog.load_table("db.t")
        return int(table.scan(selected_fields=(table.schema().column_names[0],)).to_arrow().num_rows)

    def ids(self) -> tuple[int, ...]:
        rows = self._catalog.load_table("db.t").scan(selected_fields=("id",)).to_arrow()
        return tuple(sorted(rows["id"].to_pylist()))


def table_of(table_format: Format, place: Place) -> ExperimentTable:
    """Return the table of a run."""
    return {"delta": _Delta, "iceberg": _Iceberg}[table_format](place)


def source_uri(name: str) -> str:
    """Return the URI of a data set's file, as Spark reads it."""
    return str(Location(LAKE, f"sources/{name}.csv")).replace("s3://", "s3a://", 1)
