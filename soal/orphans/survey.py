"""Survey a table's folder for files to which no retained version refers, and delete them in batches."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from safewriter.objects import StoreError, Upload
from safewriter.tables.delta.leftovers import table_of
from soal.orphans.log_actions import SharedFolderError
from soal.orphans.protection import Kind, is_of_delta, kind_of, prefix_of
from soal.orphans.report import OpenWriteFound, Orphan, OrphanReport, OrphanUpload, Tally
from soal.orphans.retained import LOG, LogMovedError, Retained, follow, read_retained

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime, timedelta

    from safewriter.objects import ListedObject, Location, ObjectStore
    from soal.orphans.protection import Attempts

_SEEN_EVERY: Final = 1000
BATCH: Final = 500
_PARALLEL: Final = 8
_T = TypeVar("_T", Orphan, OrphanUpload)


@dataclass(frozen=True, slots=True)
class Survey:
    """A survey of one table. `store` is rooted at the table; `attempts` is None without a checkpoint bucket.

    `progress` is called with the number of objects examined so far.
    """

    store: ObjectStore
    table: Location
    older_than: timedelta
    attempts: Attempts | None
    progress: Callable[[int], None]

    def look(self) -> tuple[OrphanReport, Retained]:
        """Return a report and the content of the log; delete nothing.

        Safety depends on the order: the log, the files, the open writes, the log's new commits. So a listed file of a
        write is either of an open write, or its commit is in the log.
        """
        retained = read_retained(self.store, self.table)
        before = retained.now - self.older_than
        sorter = _Sorter(retained, before)
        for entry in self._files():
            sorter.take(entry)
        if unknown := sorter.formats - retained.formats:
            raise SharedFolderError(
                f"{', '.join(sorted(unknown))} metadata lie in its folder, of which its log is silent"
            )
        uploads = tuple(self._uploads(sorter))
        writes = None if self.attempts is None else self.attempts.open_writes
        retained = follow(self.store, retained)
        old_files = sorter.old()
        report = OrphanReport(
            table=str(self.table),
            version=retained.version,
            now=retained.now,
            older_than_s=int(self.older_than.total_seconds()),
            dry_run=True,
            orphans=tuple(self._orphan(*file) for file in old_files if file[0].key not in retained.keys),
            uploads=tuple(self._upload(*upload) for upload in uploads),
            open_writes=None if writes is None else tuple(map(OpenWriteFound.of, writes)),
            other_tables=sorter.roots,
            retained=sorter.retained.tally,
            young=sorter.young.tally,
            other=sorter.other.tally,
        )
        return report, retained

    def _files(self) -> Iterator[ListedObject]:
        for number, entry in enumerate(self.store.list(""), 1):
            if number % _SEEN_EVERY == 0:
                self.progress(number)
            if not entry.key.startswith(LOG) and not entry.key.endswith("/"):
                yield entry

    def _uploads(self, sorter: _Sorter) -> Iterator[tuple[str, str, datetime]]:
        """Yield the unfinished uploads of possible orphans that began before the age limit."""
        for upload in self.store.uploads(""):
            at = upload.initiated
            if at is not None and at < sorter.before and sorter.kind_of(upload.key) is not None:
                yield upload.key, upload.id, at

    def _orphan(self, entry: ListedObject, kind: Kind) -> Orphan:
        return Orphan(
            key=entry.key,
            kind=kind,
            bytes=entry.size,
            last_modified=entry.last_modified,
            held=self._obstacle(entry.key, entry.last_modified),
        )

    def _upload(self, key: str, upload_id: str, initiated: datetime) -> OrphanUpload:
        return OrphanUpload(key=key, upload_id=upload_id, initiated=initiated, held=self._obstacle(key, initiated))

    def _obstacle(self, key: str, since: datetime) -> str | None:
        if not is_of_delta(key):
            return "it is not named as writers of Delta tables name their files: it may be another table's"
        prefix = prefix_of(key)
        if self.attempts is None:
            return None if prefix is None else "it is an attempt's with SafeWriter, and no checkpoint bucket was read"
        if self.attempts.protects(since):
            return "it may belong to an open write; settle that first, with: soal recover"
        return None if prefix is None else self.attempts.prefix_obstacle(prefix)


@dataclass(slots=True)
class _Count:
    files: int = 0
    bytes: int = 0

    def add(self, entry: ListedObject) -> None:
        self.files += 1
        self.bytes += entry.size

    @property
    def tally(self) -> Tally:
        return Tally(files=self.files, bytes=self.bytes)


@dataclass(slots=True)
class _Sorter:
    """Sorts the files of the folder into retained, young, other (not the table's), and old."""

    log: Retained
    before: datetime
    retained: _Count = field(default_factory=_Count)
    young: _Count = field(default_factory=_Count)
    other: _Count = field(default_factory=_Count)
    formats: set[str] = field(default_factory=set)
    """The formats other than Delta whose metadata the folder holds."""
    _roots: set[str] = field(default_factory=set)
    _unreferred: list[tuple[ListedObject, Kind]] = field(default_factory=list)

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders of other tables inside this table."""
        return tuple(sorted(self._roots))

    def take(self, entry: ListedObject) -> None:
        root, table_format = table_of(entry.key) or ("", None)
        if root:
            self._roots.add(root)
        elif table_format is not None:
            self.formats.add(table_format)
        kind = kind_of(entry.key, self.log.partition_columns)
        if entry.key in self.log.keys:
            self.retained.add(entry)
        elif kind is None:
            self.other.add(entry)
        else:
            self._unreferred.append((entry, kind))

    def kind_of(self, key: str) -> Kind | None:
        """Return the kind of a file; None if it belongs to another table or is never deleted."""
        return None if key.startswith(self.roots) else kind_of(key, self.log.partition_columns)

    def old(self) -> list[tuple[ListedObject, Kind]]:
        """Return the old files. Call it last: a listing may name another table's files before its log."""
        files = []
        for entry, kind in self._unreferred:
            if entry.key.startswith(self.roots):
                self.other.add(entry)
            elif entry.last_modified >= self.before:
                self.young.add(entry)
            else:
                files.append((entry, kind))
        self._unreferred.clear()
        return files


def delete(
    store: ObjectStore, report: OrphanReport, retained: Retained, progress: Callable[[int], None]
) -> tuple[OrphanReport, str | None]:
    """Delete all orphans that are not held; return the report, and why it ended early or None.

    Between two reads of the log no commit can refer to an orphan that is not held: a SafeWriter write that is not open
    cannot commit it, a later write has younger files, and `RESTORE` needs a retained version. The reads also detect a
    writer without SafeWriter that takes longer than the age limit, and a recreated table.
    `progress` is called with the number of processed objects.
    """
    orphans, uploads = list(report.orphans), list(report.uploads)
    problem = None
    try:
        due = [number for number, orphan in enumerate(orphans) if orphan.held is None]
        for start in range(0, len(due), BATCH):
            retained = follow(store, retained)
            batch = due[start : start + BATCH]
            results = _side_by_side([orphans[number] for number in batch], partial(_deleted, store, retained))
            for number, result in zip(batch, results, strict=True):
                orphans[number] = result
            progress(start + len(batch))
        uploads = _side_by_side(uploads, partial(_aborted, store))
    except (LogMovedError, StoreError) as error:
        problem = str(error)
    update = {"dry_run": False, "version": retained.version, "orphans": tuple(orphans), "uploads": tuple(uploads)}
    return report.model_copy(update=update), problem


def _side_by_side(batch: list[_T], act: Callable[[_T], _T]) -> list[_T]:
    with ThreadPoolExecutor(_PARALLEL) as pool:
        return list(pool.map(act, batch))


def _deleted(store: ObjectStore, retained: Retained, orphan: Orphan) -> Orphan:
    if orphan.key in retained.keys:
        return orphan.model_copy(update={"held": f"version {retained.version} or an earlier one refers to it now"})
    try:
        store.delete(orphan.key)
    except StoreError as error:
        return orphan.model_copy(update={"error": str(error)})
    return orphan.model_copy(update={"deleted": True})


def _aborted(store: ObjectStore, upload: OrphanUpload) -> OrphanUpload:
    if upload.held is not None:
        return upload
    try:
        store.abort(Upload(upload.key, upload.upload_id))
    except StoreError as error:
        return upload.model_copy(update={"error": str(error)})
    return upload.model_copy(update={"aborted": True})
