"""Delete the orphans, some at a time, and read the log again before each batch."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from safewriter.objects import StoreError, Upload
from soal.orphans.report import Orphan, OrphanReport, OrphanUpload
from soal.orphans.retained import LogMovedError, Retained, follow

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.objects import ObjectStore

__all__ = ["BATCH", "delete"]

BATCH: Final = 500
_PARALLEL: Final = 8
_T = TypeVar("_T", Orphan, OrphanUpload)


def delete(
    store: ObjectStore, found: OrphanReport, retained: Retained, done: Callable[[int], None]
) -> tuple[OrphanReport, str | None]:
    """Delete all that is not held; return the report, and why it ended early, if it did.

    Between two readings of the log no commit can refer to a file that is not held: a write with SafeWriter that is not
    open will not commit, one that has begun since has younger files, and `RESTORE` needs a retained version. Reading
    again finds a writer without SafeWriter that takes longer than the bound, and a table that was recreated. `done`
    gets the number of processed objects.
    """
    orphans, uploads = list(found.orphans), list(found.uploads)
    problem = None
    try:
        due = [number for number, one in enumerate(orphans) if one.held is None]
        for start in range(0, len(due), BATCH):
            retained = follow(store, retained)
            batch = due[start : start + BATCH]
            results = _each([orphans[number] for number in batch], partial(_deleted, store, retained))
            for number, result in zip(batch, results, strict=True):
                orphans[number] = result
            done(start + len(batch))
        uploads = _each(uploads, partial(_aborted, store))
    except (LogMovedError, StoreError) as error:
        problem = str(error)
    update = {"dry_run": False, "version": retained.version, "orphans": tuple(orphans), "uploads": tuple(uploads)}
    return found.model_copy(update=update), problem


def _each(batch: list[_T], act: Callable[[_T], _T]) -> list[_T]:
    with ThreadPoolExecutor(_PARALLEL) as pool:
        return list(pool.map(act, batch))


def _deleted(store: ObjectStore, retained: Retained, one: Orphan) -> Orphan:
    if one.key in retained.keys:
        return one.model_copy(update={"held": f"version {retained.version} or one before it refers to it now"})
    try:
        store.delete(one.key)
    except StoreError as error:
        return one.model_copy(update={"error": str(error)})
    return one.model_copy(update={"deleted": True})


def _aborted(store: ObjectStore, one: OrphanUpload) -> OrphanUpload:
    if one.held is not None:
        return one
    try:
        store.abort(Upload(one.key, one.upload_id))
    except StoreError as error:
        return one.model_copy(update={"error": str(error)})
    return one.model_copy(update={"aborted": True})
