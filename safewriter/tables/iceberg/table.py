"""Settle a write to an Iceberg table without a JVM: the settler reads the metadata and writes at most a fence. Then it
deletes the data files of an attempt that was not published.

The commit that publishes an attempt leaves two witnesses: its mark, a table property that outlives the snapshot, and
the attempt's name in the snapshot's summary, which cannot be unset. A fence is a tag with the attempt's name: no
publication lands beside it. docs/concepts/iceberg.md says why that is enough.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from safewriter.errors import NotCommittedError, SafeWriterError
from safewriter.identity import attempts_in
from safewriter.objects.location import Location
from safewriter.objects.store import StoreError, batches, paced
from safewriter.record.document import BY_HAND, Status
from safewriter.tables.iceberg.manifests import names_any
from safewriter.tables.iceberg.metadata import FenceTag, data_folder, head_of, properties, references, sequence_of
from safewriter.tables.iceberg.name import MAIN
from safewriter.tables.iceberg.space import one_large, one_large_at_a_time
from safewriter.tables.table import Landed, Move, Table, Trace, UndecidableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from safewriter.deadline import Clock
    from safewriter.objects.store import ObjectStore
    from safewriter.record.document import AttemptRecord, Checkpoint
    from safewriter.tables.iceberg.metadata import LiveTable
    from safewriter.tables.iceberg.name import TableName
    from safewriter.tables.iceberg.pointer import Pointer
    from safewriter.tables.session import BlockReport
    from safewriter.tables.table import Intent

__all__ = ["DECIDED_MS", "IcebergTable", "epochs_of", "name_of", "skipped_name", "snapshots_of"]

_log = logging.getLogger(__name__)
_DAY_MS: Final = 86_400_000
_KEPT_MS: Final = 7 * _DAY_MS
"""How long publications keep marks (`Publication.java`), and how long a fence lives."""
DECIDED_MS: Final = 6 * _DAY_MS
"""How long an attempt without a deadline may publish, and how long a missing mark proves that it has not."""
_MARK: Final = "safewriter."
_SUMMARY: Final = "safewriter.attempt"
"""The field of a snapshot's summary that names the attempt which has published it."""
_MARKED: Final = re.compile(
    r"(\d{1,19}) (\d{1,19}) (\d{1,19}) \d+", re.ASCII
)  # snapshot, rows, bytes, epoch milliseconds
_DIGITS: Final = re.compile(r"[0-9]{1,18}")
_CLOCKS_MS: Final = 60_000
"""By so much the clocks of a table's writers may differ: Iceberg refuses an earlier change."""
_TRIES_MAX: Final = 50
_ANCESTORS_MAX: Final = 16
"""As many blocks may follow one another within the second to which S3 tells its times."""


def name_of(attempt: AttemptRecord) -> str:
    """Return the attempt's name in its table: the mark, the fence and the staged table bear it."""
    return attempt.prefix.rstrip("-")


def skipped_name(write_key: str, nonce: str) -> str:
    """Return the name of a skipped block, which is never published: the write is committed already."""
    return f"{write_key}-skipped-{nonce}"


@dataclass(frozen=True)
class IcebergTable(Table):
    """One table of a catalog. `files` opens a bucket by its `s3://` URI. With a `rehearsal` a fence is appended to that
    list instead of set.
    """

    name: TableName
    pointer: Pointer
    clock: Clock
    may_go_on: Callable[[], bool]
    files: Callable[[str], ObjectStore]
    rehearsal: list[str] | None = None

    def held(self) -> AbstractContextManager[None]:
        """Keep the metadata file that was read last, as long as the catalog names it."""
        return one_large(self.may_go_on)

    @one_large_at_a_time
    def next_move(self, document: Checkpoint, intent: Intent) -> Move:
        """Return committed if the table shows the publication; else fence the attempt and return rolled_back."""
        if intent.nothing_sent:
            return Move(Status.ROLLED_BACK, f"{intent.cause}: nothing was published")
        landed = self._decide(document)
        if landed is None:
            return Move(Status.ROLLED_BACK, f"{intent.cause}: it was not published, and cannot be any more")
        return Move(Status.COMMITTED, f"{intent.cause} after it was published", landed)

    def confirm(self, document: Checkpoint, report: BlockReport) -> Move:
        """Return committed if the table holds the publication."""
        if not report.passed:
            raise NotCommittedError(
                f"no statement has written this block's table, {self.name}: write SafeWriter.table. A block that has"
                " nothing to write says so: success(no_change=True)"
            )
        mark = getattr(report, "mark", None)
        landed = self._decide(document) if mark is None else _publication(mark, name_of(document.attempt))
        if landed is None:
            raise NotCommittedError(
                f"{self.name} does not hold this block's write: its commit has not arrived, and cannot any more"
            )
        return Move(Status.COMMITTED, landed=landed)

    def _decide(self, document: Checkpoint) -> Landed | None:
        """Return the publication; None once it is certain that there is none and that none can land any more."""
        attempt = document.attempt
        name = name_of(attempt)
        for _ in range(_TRIES_MAX):
            if not self.may_go_on():
                break
            table = self._read(attempt.table_id, document.attempts)
            if (landed := _landed(table, name)) is not None:
                return landed
            # Checked before the fence: a settler may have set that after a publication whose mark is gone since.
            if self.clock() - attempt.started_ms > DECIDED_MS:
                raise UndecidableError(f"{self.name} may have forgotten an attempt that began more than six days ago")
            if name in references(table.metadata):
                return None
            fence = self._fence(table, name)
            if self.rehearsal is not None:
                self.rehearsal.append(f"COMMIT {self.name}: tag {name} on snapshot {fence.snapshot_id}")
                return None
            self.pointer.commit(table, fence)  # then read again: a publication may have been first
        raise StoreError(f"{self.name}: {name} could not be fenced off in time")

    def _fence(self, table: LiveTable, name: str) -> FenceTag:
        """Return a tag that expires by itself, on the snapshot that the target shows, or main, or else on the last one.

        Iceberg counts the age of a tag from its snapshot.
        """
        snapshots = {entry["snapshot-id"]: entry["timestamp-ms"] for entry in table.metadata.get("snapshots") or ()}
        heads = [head_of(table.metadata, branch) for branch in (self.name.target, MAIN)]
        snapshot_id = next((candidate for candidate in (*heads, *reversed(snapshots)) if candidate in snapshots), None)
        if snapshot_id is None:
            raise UndecidableError(f"{self.name} has no snapshot on which {name} could be fenced off")
        return FenceTag(name, snapshot_id, max(0, self.clock() - snapshots[snapshot_id]) + _KEPT_MS)

    def _read(self, table_id: str | None, seen: tuple[AttemptRecord, ...] = ()) -> LiveTable:
        """Return the table as it is now; raise `UndecidableError` if it is not the one that those attempts have seen.

        Another catalog of that name may have a copy of the table, with its id, that shows none of their publications.
        """
        table = self.pointer.read()
        if table is None:
            raise UndecidableError(f"the table {self.name} was dropped")
        table_uuid = table.metadata.get("table-uuid")  # format version 1 allows a table without one
        if table_id is not None and table_uuid != table_id:
            raise UndecidableError(f"the table was dropped and recreated: its id is {table_uuid}, it was {table_id}")
        if any(_is_behind(table.metadata, attempt) for attempt in seen if attempt.table_id == table_uuid):
            raise UndecidableError(
                f"{self.name} in this settler's catalog {self.name.catalog!r} is an older state of the table than the"
                " one that was written: let the settler's configuration name the catalog of the job"
            )
        return table

    @one_large_at_a_time
    def remove_leftovers(
        self,
        document: Checkpoint,
        attempts: tuple[AttemptRecord, ...],
        earlier: tuple[AttemptRecord, ...] = (),
        *,
        dead_nonce: str | None = None,
    ) -> int:
        """Delete the data files of attempts that have not published: each attempt has a folder of its own. Unless it is
        `dead_nonce`, an attempt that has files is fenced first.

        It leaves to `remove_orphan_files` those of another table of the name or of a dropped one, those of an attempt
        whose verdict a person has set, and those that the settler may not delete.
        """
        if self.rehearsal is not None:
            return 0
        ended = [attempt for attempt in (*earlier, *attempts) if attempt.settled_by != BY_HAND]
        if document.status is Status.COMMITTED:
            ended = [attempt for attempt in ended if attempt.nonce != document.owner]
        place = self._data_folder(document.attempts) if ended else None
        if place is None:
            return 0
        table, folder = place
        # A table that was renamed keeps its folder, and another one may have its name by now.
        ended = [old for old in ended if old.table_id is not None and old.table_id == table.metadata.get("table-uuid")]
        return sum(
            self._remove(folder / name_of(old))
            for old in ended
            if self._is_free(table, old, folder, is_dead=old.nonce == dead_nonce)
        )

    def _is_free(self, table: LiveTable, attempt: AttemptRecord, folder: Location, *, is_dead: bool) -> bool:
        """Return whether no snapshot names a file of an attempt, or can come to, whatever mark and document say."""
        name = name_of(attempt)
        try:
            left = self.files(f"s3://{folder.bucket}").list(f"{(folder / name).key}/")
            if not is_dead and next(iter(left), None) is not None:
                table = self._barred(table, name)
            if _landed(table, name) is not None:
                return False
            claimed = self._known_claim(table, attempt, folder / name)
            is_named = names_any(table.metadata, claimed, folder / name, self.files, self.may_go_on)
        except StoreError as error:
            if not error.denied:
                raise
            _log.warning("%s: the files of %s are left: %s", self.name, name, error)
            return False
        except Exception as error:  # noqa: BLE001 - pyiceberg raises many kinds for a file that it does not understand
            _log.warning("%s: the files of %s are left: %r", self.name, name, error)
            return False
        if is_named:
            _log.error("%s: snapshots name files of %s, which is settled as not published", self.name, name)
        return not is_named

    def _barred(self, table: LiveTable, name: str) -> LiveTable:
        """Return the table once an attempt is published or fenced: its document may be false, and the attempt alive."""
        for _ in range(_TRIES_MAX):
            if name in references(table.metadata) or _landed(table, name) is not None:
                return table
            self._check_time()
            self.pointer.commit(table, self._fence(table, name))  # then read again: a publication may have been first
            table = self._read(table.metadata.get("table-uuid"))
        raise StoreError(f"{self.name}: {name} could not be fenced off, so its files are left")

    def _known_claim(self, table: LiveTable, attempt: AttemptRecord, folder: Location) -> int:
        """Return the snapshot before the claim, or the next of its ancestors that S3 shows to be older than the files:
        no manifest names a file that S3 received after the snapshot's own list of manifests. 0 if there is none.
        """
        known = {entry["snapshot-id"]: entry for entry in table.metadata.get("snapshots") or ()}
        files = self.files(f"s3://{folder.bucket}").list(f"{folder.key}/")
        oldest = min((int(entry.last_modified.timestamp()) for entry in paced(files, self._check_time)), default=None)
        snapshot = known.get(attempt.version_before)
        for _ in range(_ANCESTORS_MAX):
            if snapshot is None:
                break
            if self._is_older(snapshot.get("manifest-list"), oldest):
                return int(snapshot["snapshot-id"])
            snapshot = known.get(snapshot.get("parent-snapshot-id"))
        return 0

    def _is_older(self, place: str | None, oldest: int | None) -> bool:
        """Return whether S3 received a list of manifests in an earlier second than the oldest of the files, if any."""
        if place is None:
            return False
        where = Location.parse(place)
        found = next(iter(self.files(f"s3://{where.bucket}").list(where.key)), None)
        if found is None or found.key != where.key:
            return False
        return oldest is None or int(found.last_modified.timestamp()) < oldest

    def _check_time(self) -> None:
        if not self.may_go_on():
            raise StoreError(f"{self.name}: out of time while listing the files of an attempt")

    @one_large_at_a_time
    def remove_skipped(self, document: Checkpoint, nonce: str) -> int:
        """Delete the data files of a skipped block: it has a folder of its own, too, which no settler knows."""
        place = self._data_folder(document.attempts)
        return 0 if place is None else self._remove(place[1] / skipped_name(document.write_key, nonce))

    def _data_folder(self, seen: tuple[AttemptRecord, ...]) -> tuple[LiveTable, Location] | None:
        """Return the table as it is now, with the folder of its data files; None if the folder is unknown."""
        try:
            table = self._read(None, seen)
            return table, data_folder(table.metadata)
        except StoreError:
            raise  # the caller tries again: the table may well have such a folder
        except (UndecidableError, SafeWriterError, ValueError) as error:
            _log.warning("%s: files that nothing refers to are left: %s", self.name, error)
            return None

    def _remove(self, folder: Location) -> int:
        """Delete all that is in a folder; return the number of files."""
        store, removed = self.files(f"s3://{folder.bucket}"), 0

        def check_time() -> None:
            if not self.may_go_on():
                raise StoreError(f"{folder}: out of time while cleaning up, {removed} files removed so far")

        try:
            for batch in batches(entry.key for entry in store.list(f"{folder.key}/")):
                check_time()
                store.delete_all(batch)
                removed += len(batch)
            for upload in store.uploads(f"{folder.key}/"):
                check_time()
                store.abort(upload)
        except StoreError as error:
            if not error.denied:
                raise
            _log.warning("%s: its files are left: %s", folder, error)
        return removed

    @one_large_at_a_time
    def trace(self, write_key: str, since_ms: int) -> Trace | None:
        """Look for publications and fences of a write. Marks are kept for a week, so an older write is not decided."""
        table = self._read(None)
        epochs = epochs_of(table, write_key)
        marked = {epoch: landed for name, epoch in epochs.items() if (landed := _landed(table, name))}
        if marked:
            return Trace(max(marked), marked[max(marked)], succeeded=True)
        if self.clock() - since_ms > DECIDED_MS:
            raise UndecidableError(f"{self.name} may have forgotten a write that began so long ago")
        return Trace(max(epochs.values())) if epochs else None

    def trace_from(self, write_key: str, version: int) -> Trace:  # noqa: ARG002 - the metadata is read whole
        """Look for publications and fences of a write that the table has shown a moment ago."""
        trace = self.trace(write_key, self.clock())
        if trace is None:
            raise UndecidableError(f"{self.name} has named this write, and does not any more")
        return trace


def epochs_of(table: LiveTable, write_key: str) -> dict[str, int]:
    """Return the attempts of a write that the table shows, published or fenced, by their names, with their epochs."""
    return attempts_in(_names(table), write_key)


def snapshots_of(table: LiveTable, write_key: str) -> frozenset[int]:
    """Return the snapshots by which the attempts of a write were published, as far as the table shows."""
    publications = [_landed(table, name) for name in epochs_of(table, write_key)]
    return frozenset(landed.commit_version for landed in publications if landed is not None)


def _is_behind(metadata: Mapping[str, Any], attempt: AttemptRecord) -> bool:
    """Return whether the table was in a later state when an attempt has claimed its write."""
    if attempt.sequence > 0:
        return sequence_of(metadata) < attempt.sequence
    return attempt.modified_ms is not None and metadata["last-updated-ms"] < attempt.modified_ms - _CLOCKS_MS


def _names(table: LiveTable) -> Iterator[str]:
    """Yield the names of all attempts of which the table shows a fence, a mark, or a snapshot."""
    yield from references(table.metadata)
    yield from (name.removeprefix(_MARK) for name in properties(table.metadata) if name.startswith(_MARK))
    yield from (name for snapshot in table.metadata.get("snapshots") or () if (name := _attempt_of(snapshot)))


def _attempt_of(snapshot: Mapping[str, Any]) -> str | None:
    name: str | None = (snapshot.get("summary") or {}).get(_SUMMARY)
    return name


def _landed(table: LiveTable, name: str) -> Landed | None:
    """Return the publication that an attempt's mark records, or else its snapshots; None without either.

    A mark may have been unset, and some catalogs drop properties that they do not know.
    """
    snapshots = [snapshot for snapshot in table.metadata.get("snapshots") or () if _attempt_of(snapshot) == name]
    mark = properties(table.metadata).get(f"{_MARK}{name}")
    if mark is not None and (not snapshots or _MARKED.fullmatch(mark)):
        return _publication(mark, name)
    if not snapshots:
        return None
    rows, size = (
        sum(_number(entry["summary"].get(key)) for entry in snapshots) for key in ("added-records", "added-files-size")
    )
    return Landed(snapshots[-1]["snapshot-id"], rows, size)


def _number(text: object) -> int:
    """Return a count in a summary; 0 if it is no number of at most 18 digits."""
    return int(str(text)) if _DIGITS.fullmatch(str(text)) else 0


def _publication(mark: str, name: str) -> Landed:
    match = _MARKED.fullmatch(mark)
    if match is None:
        raise UndecidableError(f"the table's property {_MARK}{name} is {mark!r}, which is no mark")
    return Landed(int(match[1]), int(match[2]), int(match[3]))
