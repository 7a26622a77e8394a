"""Checks after the write: write-audit-publish done wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.lab.campaign.wrong.script import BASE, BATCH, BOTH, MERGED, script

if TYPE_CHECKING:
    from tests.lab.campaign.wrong.job import WrongJob


def _check(job: WrongJob, *, fails_in: tuple[int, ...] = (1, 2)) -> None:
    if job.attempt in fails_in:
        raise ValueError("more rows than expected")


@script(formats=BOTH)
def behind_an_append(job: WrongJob) -> None:
    """The check in the block counts the table, and fails on each attempt."""
    with job.guard() as sw:
        job.append(sw.table)
        if job.count(sw.table) > len(BASE):
            raise ValueError("more rows than expected")
        sw.success()


@script(formats=BOTH, succeeds=(2,))
def behind_an_append_once(job: WrongJob) -> None:
    """The check fails on the first attempt only."""
    with job.guard() as sw:
        job.append(sw.table)
        _check(job, fails_in=(1,))
        sw.success()


@script(formats=BOTH, after=MERGED)
def behind_a_merge(job: WrongJob) -> None:
    """The check fails after a MERGE on each attempt."""
    with job.guard() as sw:
        job.merge(sw.table)
        _check(job)
        sw.success()


@script(formats=BOTH, after=MERGED, succeeds=(2,), short=("delta",))
def behind_a_merge_once(job: WrongJob) -> None:
    """The check fails after a MERGE on the first attempt only; a second MERGE would move rows twice."""
    with job.guard() as sw:
        job.merge(sw.table)
        _check(job, fails_in=(1,))
        sw.success()


@script(formats=BOTH, after=(3, 4), succeeds=(2,))
def behind_a_delete_once(job: WrongJob) -> None:
    """The check fails after a DELETE on the first attempt only."""
    with job.guard() as sw:
        job.sql("DELETE FROM {table} WHERE id < 3", sw.table)
        _check(job, fails_in=(1,))
        sw.success()


@script(after=BATCH, succeeds=(2,))
def behind_an_overwrite_once(job: WrongJob) -> None:
    """The check fails after an overwrite on the first attempt only."""
    with job.guard() as sw:
        job.frame().write.format("delta").mode("overwrite").save(sw.table)
        _check(job, fails_in=(1,))
        sw.success()


@script(before=(), succeeds=(2,))
def behind_a_creation_once(job: WrongJob) -> None:
    """The check fails on the first attempt only, after an append that creates the table."""
    with job.guard() as sw:
        job.append(sw.table)
        _check(job, fails_in=(1,))
        sw.success()


@script(after=(*BASE, *BATCH))
def behind_an_append_with_a_new_column(job: WrongJob) -> None:
    """The check fails on the first attempt only, after an append that changes the schema."""
    with job.guard() as sw:
        frame = job.frame().selectExpr("id", "'new' AS more")
        frame.write.format("delta").mode("append").option("mergeSchema", "true").save(sw.table)
        _check(job, fails_in=(1,))
        sw.success()


@script(succeeds=(2,))
def with_success_as_the_commit_point(job: WrongJob) -> None:
    """The block promises to undo an append, and has to."""
    with job.guard(commit_point="success") as sw:
        job.append(sw.table)
        _check(job, fails_in=(1,))
        sw.success()


@script(after=MERGED)
def merge_with_success_as_the_commit_point(job: WrongJob) -> None:
    """The block promises to undo a MERGE."""
    with job.guard(commit_point="success") as sw:
        job.merge(sw.table)
        _check(job, fails_in=(1,))
        sw.success()


@script(formats=BOTH)
def behind_success(job: WrongJob) -> None:
    """The check runs after success(), which nothing undoes."""
    with job.guard() as sw:
        job.append(sw.table)
        sw.success()
        _check(job)


@script()
def taken_back_by_delete(job: WrongJob) -> None:
    """When the check fails, the script deletes its own rows by a second statement, and raises."""
    with job.guard() as sw:
        job.append(sw.table)
        job.sql("DELETE FROM {table} WHERE id >= 10", sw.table)
        _check(job)


@script()
def taken_back_by_restore(job: WrongJob) -> None:
    """When the check fails, the script restores the previous version, and raises."""
    with job.guard() as sw:
        job.append(sw.table)
        job.sql("RESTORE TABLE {table} TO VERSION AS OF 0", sw.table)
        _check(job)


@script(formats=BOTH)
def of_another_table_than_the_block_s(job: WrongJob) -> None:
    """The check reads the published table, which on Iceberg has no row of the block before success()."""
    with job.guard() as sw:
        job.append(sw.table)
        if job.count(job.table) != len(BASE) + len(BATCH):
            raise ValueError("rows are missing")
        sw.success()
