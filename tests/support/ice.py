"""An Iceberg table and its catalog, seen from outside: by pyiceberg and boto3, never by the Spark that wrote it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyiceberg.catalog import load_catalog
from pyiceberg.table.snapshots import ancestors_of

from safewriter.checkpoint import Checkpoints
from safewriter.objects.location import Location
from safewriter.objects.s3 import S3ObjectStore
from safewriter.tables.iceberg.staging import EPOCH, WRITE
from safewriter.tables.table import NO_CHANGE
from tests.support.lake import CHECKPOINTS, LAKE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_s3 import S3Client
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from safewriter.state import Checkpoint

__all__ = ["Ice", "catalog_settings"]


def catalog_settings(catalog: str, database: str) -> dict[str, str]:
    """Return the session's settings for a JDBC catalog on a SQLite file."""
    prefix = f"spark.sql.catalog.{catalog}"
    return {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.type": "jdbc",
        f"{prefix}.uri": f"jdbc:sqlite:{database}",
        f"{prefix}.jdbc.schema-version": "V1",
        f"{prefix}.warehouse": f"s3a://{LAKE}/{catalog}",
    }


@dataclass(frozen=True)
class Ice:
    """One table, `catalog.namespace.table`, of a catalog on a SQLite file."""

    client: S3Client
    database: str
    name: str

    @property
    def catalog(self) -> str:
        return self.name.partition(".")[0]

    @property
    def checkpoints(self) -> Checkpoints:
        return Checkpoints(S3ObjectStore(self.client, CHECKPOINTS))

    def load(self) -> Table:
        opened = load_catalog(
            self.catalog,
            type="sql",
            uri=f"sqlite:///{self.database}",
            init_catalog_tables="false",
            **{"py-io-impl": "safewriter.tables.iceberg.fileio.ObjectFileIO"},
        )
        return opened.load_table(self.name.partition(".")[2])

    def history(self) -> list[Snapshot]:
        """The snapshots of main, oldest first."""
        metadata = self.load().metadata
        main = metadata.current_snapshot()
        return [] if main is None else list(ancestors_of(main, metadata))[::-1]

    def refs(self) -> set[str]:
        return set(self.load().metadata.refs)

    def rows(self) -> int:
        history = self.history()
        return int(history[-1].summary.get("total-records") or 0) if history and history[-1].summary else 0

    # -- files -------------------------------------------------------------------------------------------------------

    def referred(self) -> set[str]:
        """All files that the table's metadata leads to, from any snapshot."""
        table = self.load()
        found = {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
        for snapshot in table.metadata.snapshots:
            found.add(snapshot.manifest_list)
            for manifest in snapshot.manifests(table.io):
                found.add(manifest.manifest_path)
                found |= {entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io)}
        return {str(Location.parse(path)) for path in found}

    def keys(self) -> set[str]:
        where = Location.parse(self.load().metadata.location)
        store = S3ObjectStore(self.client, where.bucket, where.key)
        return {store.uri(listed.key) for listed in store.list("") if not listed.key.endswith("/")}

    def orphans(self) -> set[str]:
        return self.keys() - self.referred()

    # -- the checkpoints ---------------------------------------------------------------------------------------------

    def documents(self) -> list[Checkpoint]:
        found = [self.checkpoints.read(listed.key[12:-5]) for listed in self.checkpoints.store.list("checkpoints/")]
        return [stored.document for stored in found if stored is not None and stored.document.table == self.name]

    def document(self) -> Checkpoint:
        (document,) = self.documents()
        return document

    def markers(self, document: Checkpoint) -> tuple[str, ...]:
        return tuple(one.nonce for one in self.checkpoints.marked() if one.write_key == document.write_key)

    def check(self) -> None:
        """All files of the table are there; every settled document tells the truth about main."""
        assert self.referred() <= self.keys()
        for document in self.documents():
            if document.reason != NO_CHANGE and document.status in ("committed", "rolled_back"):
                live = list(self._live(document))
                assert len(live) == (1 if document.status == "committed" else 0), (document, live)

    def _live(self, document: Checkpoint) -> Iterator[int]:
        picked = document.attempt.commit_version
        for snapshot in self.history():
            said = snapshot.summary
            if snapshot.snapshot_id == picked or (said is not None and said.get(WRITE) == document.write_key):
                assert said is not None
                assert int(said.get(EPOCH) or document.epoch) <= document.epoch
                yield snapshot.snapshot_id
