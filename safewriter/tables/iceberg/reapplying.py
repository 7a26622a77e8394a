"""A staged append once more, on a target that has moved on: a snapshot of its own that names the same data files.

What Iceberg's cherry-pick does in a JVM. The manifests are written anew, since those that are staged belong to the
staged snapshot; data files stay where they are.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus, write_manifest, write_manifest_list
from pyiceberg.table import TableProperties
from pyiceberg.table.snapshots import (
    Operation,
    Snapshot,
    SnapshotSummaryCollector,
    Summary,
    update_snapshot_summaries,
)
from pyiceberg.table.update import AddSnapshotUpdate

from safewriter.tables.iceberg.staging import EPOCH, SOURCE, WRITE, branch_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.manifest import DataFile, ManifestFile
    from pyiceberg.table import Table

    from safewriter.state import Checkpoint
    from safewriter.tables.iceberg.staging import Staged

__all__ = ["applied_again"]


def applied_again(table: Table, staged: Staged, document: Checkpoint) -> AddSnapshotUpdate:
    """Write the manifests of a snapshot on top of the target, and return it; nothing of it is visible yet."""
    metadata, io = table.metadata, table.io
    snapshot_id = metadata.new_snapshot_id()
    # The attempt's mark begins the names, so that these files are known as its own if nobody comes to commit them.
    mark, name = branch_of(document.attempt), uuid.uuid4()
    places = table.location_provider()
    compression = metadata.properties.get(
        TableProperties.WRITE_AVRO_COMPRESSION, TableProperties.WRITE_AVRO_COMPRESSION_DEFAULT
    )
    files = tuple(_added(table, staged))
    manifests = []
    for number, spec_id in enumerate(sorted({file.spec_id for file in files})):
        with write_manifest(
            metadata.format_version,  # version 3 is refused at the start
            metadata.specs()[spec_id],
            metadata.schema(),
            io.new_output(places.new_metadata_location(f"{mark}-{name}-m{number}.avro")),
            snapshot_id,
            compression,  # type: ignore[arg-type]
        ) as writer:
            for file in files:
                if file.spec_id == spec_id:
                    writer.add(_entry(file, snapshot_id))
        manifests.append(writer.to_manifest_file())
    listed = places.new_metadata_location(f"{mark}-snap-{snapshot_id}-0-{name}.avro")
    with write_manifest_list(
        metadata.format_version,
        io.new_output(listed),
        snapshot_id,
        staged.target_head,
        metadata.next_sequence_number(),
        compression,  # type: ignore[arg-type]
    ) as everything:
        everything.add_manifests([*manifests, *_kept(table, staged)])
    return AddSnapshotUpdate(
        snapshot=Snapshot(
            snapshot_id=snapshot_id,
            parent_snapshot_id=staged.target_head,
            manifest_list=listed,
            sequence_number=metadata.next_sequence_number(),
            summary=_summary(table, staged, files, document),
            schema_id=metadata.current_schema_id,
        )
    )


def _added(table: Table, staged: Staged) -> Iterator[DataFile]:
    """Return the data files that the staged snapshots brought in, each once."""
    for step in staged.steps:
        for manifest in step.manifests(table.io):
            if manifest.added_snapshot_id == step.snapshot_id:
                for entry in manifest.fetch_manifest_entry(table.io):
                    if entry.status == ManifestEntryStatus.ADDED and entry.snapshot_id == step.snapshot_id:
                        yield entry.data_file


def _kept(table: Table, staged: Staged) -> Iterator[ManifestFile]:
    head = None if staged.target_head is None else table.metadata.snapshot_by_id(staged.target_head)
    for manifest in [] if head is None else head.manifests(table.io):
        if manifest.has_added_files() or manifest.has_existing_files():
            yield manifest


def _entry(file: DataFile, snapshot_id: int) -> ManifestEntry:
    return ManifestEntry.from_args(
        status=ManifestEntryStatus.ADDED,
        snapshot_id=snapshot_id,
        sequence_number=None,
        file_sequence_number=None,
        data_file=file,
    )


def _summary(table: Table, staged: Staged, files: tuple[DataFile, ...], document: Checkpoint) -> Summary:
    metadata = table.metadata
    counts = SnapshotSummaryCollector()
    for file in files:
        counts.add_file(file, metadata.schema(), metadata.specs()[file.spec_id])
    ours = {WRITE: document.write_key, EPOCH: str(document.epoch), SOURCE: str(staged.snapshot_id)}
    head = None if staged.target_head is None else metadata.snapshot_by_id(staged.target_head)
    return update_snapshot_summaries(
        summary=Summary(operation=Operation.APPEND, **counts.build(), **ours),
        previous_summary=None if head is None or head.summary is None else head.summary,
    )
