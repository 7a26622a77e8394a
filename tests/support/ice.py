"""An Iceberg table and its catalog, seen from outside: by pyiceberg and boto3, never by the Spark that wrote it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pyiceberg.catalog import load_catalog
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType

from handler.spark_settings.catalogs import HTTP_CLIENT
from safewriter.objects.location import Location
from safewriter.objects.s3 import S3ObjectStore
from safewriter.record.document import NO_CHANGE
from scripts.tables.iceberg import main_snapshots
from soal.local.names import REGION
from soal.orphans.iceberg import referred
from tests.support.iceberg_files import WRITING_IO
from tests.support.observed import LAKE, Observed
from tests.support.postgres import USER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from mypy_boto3_s3 import S3Client
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot


__all__ = ["Catalog", "Ice", "warehouse"]

_MARK: Final = "safewriter."
"""The prefix of the table properties that a publication sets."""


@dataclass(frozen=True)
class Catalog:
    """One catalog: its name, and how Spark and pyiceberg reach it."""

    name: str
    spark: Mapping[str, str]
    pyiceberg: Mapping[str, str]
    database: Path | None = None
    """The SQLite file of the catalog, if it has one."""

    @classmethod
    def sqlite(cls, name: str, database: Path) -> Catalog:
        """A JDBC catalog on a SQLite file."""
        spark = {"type": "jdbc", "uri": f"jdbc:sqlite:{database}", "jdbc.schema-version": "V1"}
        pyiceberg = {"type": "sql", "uri": f"sqlite:///{database}", "init_catalog_tables": "false"}
        return cls._of(name, spark, pyiceberg, database)

    @classmethod
    def postgres(cls, name: str, address: str, password: str) -> Catalog:
        """A JDBC catalog in PostgreSQL; `address` is `host:port/database`."""
        login = {"jdbc.user": USER, "jdbc.password": password}
        spark = {"type": "jdbc", "uri": f"jdbc:postgresql://{address}", "jdbc.schema-version": "V1", **login}
        uri = f"postgresql+psycopg2://{USER}:{password}@{address}"
        return cls._of(name, spark, {"type": "sql", "uri": uri, "init_catalog_tables": "false"})

    @classmethod
    def rest(cls, name: str, uri: str, database: Path) -> Catalog:
        """A catalog behind a REST server, which stores it in a SQLite file."""
        return cls._of(name, {"type": "rest", "uri": uri}, {"type": "rest", "uri": uri}, database)

    @classmethod
    def glue(cls, name: str, endpoint: str) -> Catalog:
        """A catalog in an emulator's Glue, with paths as Glue's other clients write them."""
        from tests.support.glue_versions import check_versions  # importing moto's Glue takes a quarter of a second

        check_versions()
        where = {"type": "glue", "glue.endpoint": endpoint}
        spark = {**where, "client.region": REGION, **HTTP_CLIENT}
        made = cls._of(name, spark, {**where, "glue.region": REGION})
        return replace(made, spark={**made.spark, "warehouse": warehouse(name, "s3")})

    @classmethod
    def _of(cls, name: str, spark: dict[str, str], pyiceberg: dict[str, str], database: Path | None = None) -> Catalog:
        return cls(
            name,
            {**spark, "warehouse": warehouse(name), "io-impl": "org.apache.iceberg.hadoop.HadoopFileIO"},
            {**pyiceberg, **WRITING_IO},
            database,
        )

    def with_s3_client(self, endpoint: str) -> Catalog:
        """Return the same catalog with Iceberg's own S3 client."""
        own = {"s3.endpoint": endpoint, "s3.path-style-access": "true", "client.region": REGION}
        return replace(self, spark={**self.spark, **own, "io-impl": "org.apache.iceberg.aws.s3.S3FileIO"})

    def settings(self) -> dict[str, str]:
        """Return the settings of a Spark session that uses the catalog."""
        prefix = f"spark.sql.catalog.{self.name}"
        own = {f"{prefix}.{key}": value for key, value in self.spark.items()}
        return {prefix: "org.apache.iceberg.spark.SparkCatalog", **own}

    def table(self, client: S3Client) -> Ice:
        """Return a table that does not exist yet, in the namespace `db`."""
        return Ice(client, self, f"{self.name}.db.t{uuid.uuid4().hex}")


def warehouse(catalog: str, scheme: str = "s3a") -> str:
    """The location of a catalog's tables."""
    return f"{scheme}://{LAKE}/{catalog}"


@dataclass(frozen=True)
class Ice(Observed):
    """One Iceberg table, `catalog.namespace.table`."""

    catalog: Catalog
    name: str

    def is_named(self, table: str) -> bool:
        return table == self.name

    def load(self) -> Table:
        return load_catalog(self.catalog.name, **self.catalog.pyiceberg).load_table(self.name.partition(".")[2])

    def history(self) -> list[object]:
        return [*self.snapshots()]

    def snapshots(self) -> list[Snapshot]:
        """The snapshots of main, oldest first."""
        return main_snapshots(self.load())

    def refs(self) -> set[str]:
        return set(self.load().metadata.refs)

    def strays(self) -> set[str]:
        """The references other than main and the fences, which are expiring tags, of attempts."""
        attempts = {attempt.prefix.rstrip("-") for document in self.documents() for attempt in document.attempts}
        found = self.load().metadata.refs.items()
        tags = {name for name, ref in found if ref.snapshot_ref_type is SnapshotRefType.TAG and ref.max_ref_age_ms}
        return {name for name, _ in found} - {MAIN_BRANCH} - (attempts & tags)

    def rows(self) -> int:
        found = self.snapshots()
        return int(found[-1].summary.get("total-records") or 0) if found and found[-1].summary else 0

    # -- files -------------------------------------------------------------------------------------------------------

    def referred(self) -> set[str]:
        """All files that the table's metadata references, from any snapshot."""
        return referred(self.load())

    def keys(self) -> set[str]:
        where = Location.parse(self.load().metadata.location)
        store = S3ObjectStore(self.client, where.bucket, where.key)
        return {store.uri(listed.key) for listed in store.list("") if not listed.key.endswith("/")}

    def orphans(self) -> set[str]:
        return self.keys() - self.referred()

    # -- invariants --------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Check that all files of the table exist, and that every settled document agrees with main and the marks."""
        table = self.load()
        assert referred(table) <= self.keys()
        marks = [name.removeprefix(_MARK) for name in table.properties if name.startswith(_MARK)]
        for found in (marks, [*self._attempts()]):
            for document in self.documents():
                if document.reason != NO_CHANGE and document.status in ("committed", "rolled_back"):
                    held = {attempt for attempt in found if attempt.startswith(f"{document.write_key}-")}
                    own = document.attempt.prefix.rstrip("-")
                    assert held == ({own} if document.status == "committed" else set()), (document, held)

    def _attempts(self) -> Iterator[str]:
        """Yield the attempts with a snapshot in main, by the marks of their statements."""
        for snapshot in self.snapshots():
            if snapshot.summary is not None and (attempt := snapshot.summary.get("safewriter.attempt")):
                yield attempt
