"""A state of the model as a real table and document, and what the code makes of them as the model sees it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import update_table_metadata
from pyiceberg.typedef import Record

from safewriter.checkpoint import Checkpoints
from safewriter.errors import UnknownOutcomeError
from safewriter.identity import Attempt, Run, Write
from safewriter.liveness import GRACE_MS
from safewriter.objects import MemoryObjectStore
from safewriter.recovery import Evidence, Recovery
from safewriter.state import AttemptRecord, Checkpoint
from safewriter.tables.iceberg.fileio import ObjectFileIO
from safewriter.tables.iceberg.name import TableName
from safewriter.tables.iceberg.staging import EPOCH, SOURCE, WRITE, branch_of
from tests.model.iceberg.table import FOREIGN, MAIN

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata

    from safewriter.state import CommitPoint
    from tests.model.state import Claim, Doc, Settling, State

__all__ = ["Materialised"]

_NAME: Final = TableName.parse("lite.db.t")
_FOLDER: Final = "s3://lake/w/db/t"
_NOW_MS: Final = 1_800_000_000_000


class OnePointer(NoopCatalog):
    """A catalog of one table, which is there or not."""

    def __init__(self, metadata: TableMetadata | None) -> None:
        super().__init__("lite")
        self.metadata = metadata

    def load_table(self, identifier: Any) -> Table:
        if self.metadata is None:
            raise NoSuchTableError(identifier)
        return Table(identifier, self.metadata, f"{_FOLDER}/metadata/now.json", ObjectFileIO({}), self)

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        for requirement in requirements:
            requirement.validate(self.metadata)
        self.metadata = update_table_metadata(self.load_table(table.name()).metadata, updates)
        return CommitTableResponse(metadata=self.metadata, metadata_location=f"{_FOLDER}/metadata/now.json")


class Materialised:
    """The stores and the catalog as the code would have left them in a state of the model."""

    def __init__(self, state: State, commit_point: CommitPoint) -> None:
        assert state.doc is not None
        self._state, self._commit_point, self._claims = state, commit_point, state.doc.claims
        self._bucket, self._lake = (MemoryObjectStore(self._now, name) for name in ("checkpoints", "lake"))
        self._checkpoints = Checkpoints(self._bucket)
        self._key = Write(Run("run", "run-id", None, "job"), _NAME, "iceberg", None).key
        self._bucket.create(f"checkpoints/{self._key}.json", self._document(state.doc).to_bytes())
        for claim in self._claims:
            if state.files[claim.attempt] in ("there", "stray"):
                self._lake.put(self._data(f"{self._record(claim).prefix}unstaged"), b"parquet")
        self._manifests: dict[int, list[ManifestFile]] = {0: []}
        self.catalog = OnePointer(self._metadata() if state.table.there else None)

    @staticmethod
    def _now() -> datetime:
        return datetime.fromtimestamp(_NOW_MS / 1000, UTC)

    # -- from the model ------------------------------------------------------------------------------------------------

    def _document(self, doc: Doc) -> Checkpoint:
        return Checkpoint(
            run_key="run",
            write_key=self._key,
            fingerprint="",
            table=str(_NAME),
            format="iceberg",
            step=None,
            commit_point=self._commit_point,
            status=doc.status,
            epoch=doc.epoch,
            owner=self._record(doc.claims[-1]).nonce,
            attempts=tuple(self._record(claim) for claim in doc.claims),
        )

    def _record(self, claim: Claim) -> AttemptRecord:
        nonce, epoch = f"{claim.attempt + 1:016x}", 1 + self._claims.index(claim)
        over = self._state.clocks[claim.attempt] == 2
        return AttemptRecord(
            epoch=epoch,
            nonce=nonce,
            run_id="run-id",
            request_id=None,
            prefix=Attempt(nonce).file_prefix(self._key, epoch),
            deadline_ms=_NOW_MS + (-GRACE_MS - 1000 if over else 600_000),
            started_ms=_NOW_MS,
            version_before=claim.before,
            commit_version=claim.picked or None,
            cleaned=claim.cleaned,
        )

    def _branch(self, attempt: int) -> str:
        if attempt == MAIN:
            return MAIN_BRANCH
        return branch_of(self._record(next(claim for claim in self._claims if claim.attempt == attempt)))

    def _metadata(self) -> TableMetadata:
        table = self._state.table
        metadata = new_table_metadata(Schema(), UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, _FOLDER)
        snapshots = [self._snapshot(number) for number in range(1, len(table.snapshots) + 1)]
        refs = {
            self._branch(ref): SnapshotRef.model_validate({"snapshot-id": head, "type": "branch"})
            for ref, head in enumerate(table.refs)
            if head
        }
        known = [one for one in snapshots if not table.at(one.snapshot_id).gone]
        changes = {"snapshots": known, "refs": refs, "last_sequence_number": len(snapshots)}
        return metadata.model_copy(update={**changes, "current_snapshot_id": table.main or None})

    def _snapshot(self, number: int) -> Snapshot:
        one = self._state.table.at(number)
        files = [self._file(source) for source in one.holds or (number,)]
        listed = f"{_FOLDER}/metadata/snap-{number}.avro"
        io = ObjectFileIO({}, self._store)
        manifest = io.new_output(f"{_FOLDER}/metadata/m-{number}.avro")
        with write_manifest(2, UNPARTITIONED_PARTITION_SPEC, Schema(), manifest, number, "null") as writer:
            for file in files:
                writer.add(
                    ManifestEntry.from_args(
                        status=ManifestEntryStatus.ADDED, snapshot_id=number, sequence_number=None, data_file=file
                    )
                )
        with write_manifest_list(2, io.new_output(listed), number, one.parent or None, number, "null") as everything:
            everything.add_manifests([*self._manifests[one.parent], writer.to_manifest_file()])
        self._manifests[number] = list(Snapshot(snapshot_id=number, manifest_list=listed).manifests(io))  # numbered
        if not one.deleted:
            for file in files:
                self._lake.put(file.file_path.removeprefix("s3://lake/"), b"parquet")
        marks = {WRITE: self._key, EPOCH: str(one.epoch)} if one.epoch else {}
        if one.holds:
            marks[SOURCE] = str(one.holds[0])
        operation = Operation.APPEND if one.appends else Operation.OVERWRITE if marks else Operation.DELETE
        return Snapshot(
            snapshot_id=number,
            parent_snapshot_id=one.parent or None,
            sequence_number=number,
            timestamp_ms=_NOW_MS + number,
            manifest_list=listed,
            summary=Summary(operation=operation, **marks),
            schema_id=0,
        )

    def _file(self, number: int) -> DataFile:
        file = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=f"s3://lake/{self._data(self._staged(number))}",
            file_format=FileFormat.PARQUET,
            partition=Record(),
            record_count=1,
            file_size_in_bytes=7,
        )
        file.spec_id = 0
        return file

    def _staged(self, number: int) -> str:
        attempt = self._state.table.at(number).attempt
        return f"foreign-{number}" if attempt == FOREIGN else f"{self._branch(attempt)}-staged-{number}"

    @staticmethod
    def _data(name: str) -> str:
        return f"w/db/t/data/{name}.parquet"

    def _store(self, uri: str) -> MemoryObjectStore:
        assert uri == "s3://lake"
        return self._lake

    # -- what the code does with it ------------------------------------------------------------------------------------

    def settled(self, settling: Settling) -> bool:
        """Let the code settle; False if it could not tell."""
        recovery = Recovery(self._checkpoints, self._store, clock=lambda: _NOW_MS)
        evidence = Evidence(settling.epoch or None, nothing_sent=settling.nothing_sent, quiet=settling.quiet >= 0)
        try:
            recovery.settle(self._key, settling.cause, evidence)
        except UnknownOutcomeError:
            return False
        return True

    # -- back to the model -------------------------------------------------------------------------------------------

    def refs(self) -> tuple[int, ...]:
        """Return which snapshot each reference shows, in the model's numbers."""
        refs = {} if self.catalog.metadata is None else self.catalog.metadata.refs
        names = {self._branch(claim.attempt): claim.attempt for claim in self._claims} | {MAIN_BRANCH: MAIN}
        found = {names[name]: self._number(ref.snapshot_id) for name, ref in refs.items()}
        return tuple(found.get(ref, 0) for ref in range(MAIN + 1))

    def snapshots(self) -> set[int]:
        """Return the snapshots that the metadata knows."""
        known = [] if self.catalog.metadata is None else self.catalog.metadata.snapshots
        return {self._number(one.snapshot_id) for one in known}

    def _number(self, snapshot_id: int) -> int:
        count = len(self._state.table.snapshots)
        return snapshot_id if snapshot_id <= count else count + 1  # settling adds one at most

    def doc(self) -> tuple[str, int, tuple[int, ...], tuple[bool, ...]]:
        """Return status, epoch, what is picked, and which attempts are clean."""
        stored = self._checkpoints.read(self._key)
        assert stored is not None
        picked = tuple(self._number(one.commit_version or 0) for one in stored.document.attempts)
        clean = tuple(one.cleaned for one in stored.document.attempts)
        return stored.document.status.value, stored.document.epoch, picked, clean

    def files(self) -> tuple[set[int], set[int]]:
        """Return of which snapshots the files are there, and which attempts' that no snapshot holds."""
        there = {one.key for one in self._lake.list("w/db/t/data/")}
        numbers = range(1, len(self._state.table.snapshots) + 1)
        staged = {number for number in numbers if self._data(self._staged(number)) in there}
        unstaged = {c.attempt for c in self._claims if self._data(f"{self._record(c).prefix}unstaged") in there}
        return staged, unstaged
