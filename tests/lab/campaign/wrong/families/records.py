"""Changes to a run between its attempts: deleted records, and scripts that are mended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter import parts
from tests.lab.campaign.wrong.script import BASE, BATCH, BOTH, MERGED, script

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.lab.campaign.wrong.job import WrongJob


def _empty_the_bucket(job: WrongJob) -> None:
    store = job.checkpoints.store
    for one in [*store.list("")]:
        store.delete(one.key)


def _delete_documents(job: WrongJob) -> None:
    store = job.checkpoints.store
    for one in [*store.list("checkpoints/")]:
        store.delete(one.key)


@script(formats=BOTH, between=_empty_the_bucket, short=BOTH)
def bucket_emptied(job: WrongJob) -> None:
    """The checkpoint bucket is emptied, and the committed run is started again."""
    with job.guard() as sw:
        job.append(sw.table)
        sw.success()


@script(formats=BOTH, after=MERGED, between=_delete_documents)
def document_deleted_behind_a_merge(job: WrongJob) -> None:
    """A lifecycle rule deletes the document, and the MERGE would move rows twice."""
    with job.guard() as sw:
        job.merge(sw.table)
        sw.success()


@script(formats=BOTH, between=_delete_documents)
def document_deleted_behind_a_failure(job: WrongJob) -> None:
    """The document of a block that was undone is deleted before the retry."""
    with job.guard() as sw:
        job.append(sw.table)
        if job.attempt == 1:
            raise ValueError("a check that fails once")
        sw.success()


@script(after=MERGED, between=_empty_the_bucket)
def bucket_emptied_behind_a_commit_that_stays(job: WrongJob) -> None:
    """The block fails after a MERGE, which may stay, and the bucket is emptied before the retry."""
    with job.guard() as sw:
        job.merge(sw.table)
        if job.attempt == 1:
            raise ValueError("a check that fails once")
        sw.success()


def _load(job: WrongJob, batches: Sequence[Sequence[int]]) -> None:
    """Load batches as parts named by their numbers."""
    for part in parts(
        job.spark, job.table, batches, format=job.table_format, name=lambda ids: f"part {list(batches).index(ids)}"
    ):
        with part as sw:
            job.append(sw.table, part.value)
            sw.success()


_THIRDS = ((10, 11, 12), (13, 14), (15, 16))


@script(formats=BOTH, between=_empty_the_bucket)
def bucket_emptied_behind_parts(job: WrongJob) -> None:
    """The checkpoint bucket is emptied after a committed run in three parts."""
    _load(job, _THIRDS)


@script(
    formats=BOTH,
    after=(*BASE, *BATCH),
    parts=((*BASE, 10, 11, 12), (*BASE, 10, 11, 12, 13, 14)),
    short=("delta",),
)
def parts_of_other_values(job: WrongJob) -> None:
    """The mended script makes two parts instead of three, under the same names."""
    if job.attempt == 1:
        _load(job, _THIRDS[:2])
        raise ValueError("the third part is not there yet")
    _load(job, ((10, 11, 12), (13, 14, 15, 16)))


@script(formats=BOTH, parts=((*BASE, 10, 11, 12),))
def parts_that_go_on(job: WrongJob) -> None:
    """The first attempt fails after its first part, and the retry continues there: right."""
    for number, part in enumerate(parts(job.spark, job.table, _THIRDS, format=job.table_format)):
        with part as sw:
            job.append(sw.table, part.value)
            if job.attempt == 1 and number == 1:
                raise ValueError("a check that fails once")
            sw.success()


@script(formats=BOTH, parts=((*BASE, 10, 11, 12),), is_mended=True)
def steps_of_other_values(job: WrongJob) -> None:
    """The mended script writes more rows in a committed step."""
    first = (10, 11, 12) if job.attempt == 1 else (10, 11, 12, 13, 14)
    with job.guard(step="first") as sw:
        job.append(sw.table, first)
        sw.success()
    if job.attempt == 1:
        raise ValueError("rows are missing in the first step")
    with job.guard(step="second") as sw:
        job.append(sw.table, (15, 16))
        sw.success()


@script(formats=BOTH, parts=((*BASE, 10, 11, 12),), is_mended=True)
def mended_behind_a_success(job: WrongJob) -> None:
    """The first attempt writes too few rows and succeeds; the mended script runs under the same token."""
    with job.guard() as sw:
        job.append(sw.table, (10, 11, 12) if job.attempt == 1 else BATCH)
        sw.success()
    if job.attempt == 1:
        raise ValueError("rows are missing")


@script(formats=BOTH, is_mended=True)
def mended_behind_a_failure(job: WrongJob) -> None:
    """The first attempt fails before its write, and the mended script writes all rows under the same token."""
    with job.guard() as sw:
        if job.attempt == 1:
            raise ValueError("a column is missing")
        job.append(sw.table)
        sw.success()
