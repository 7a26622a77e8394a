"""Delta's own transactions, `txnAppId` and `txnVersion`, beside the guard's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.lab.campaign.wrong.script import BASE, BATCH, MERGED, script

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.lab.campaign.wrong.job import WrongJob

_SETTING = "spark.databricks.delta.write.txn"


def _append(job: WrongJob, table: str, ids: Sequence[int] = BATCH) -> None:
    frame = job.frame(ids).write.format("delta").mode("append")
    frame.option("txnAppId", "nightly").option("txnVersion", "1").save(table)


def _set(job: WrongJob) -> None:
    job.spark.conf.set(f"{_SETTING}AppId", "nightly")
    job.spark.conf.set(f"{_SETTING}Version", "1")


@script()
def options(job: WrongJob) -> None:
    """The append names a transaction of the script's own, and so does the retry."""
    with job.guard() as sw:
        _append(job, sw.table)
        sw.success()


@script(short=("delta",))
def options_and_an_error_behind(job: WrongJob) -> None:
    """The first attempt fails after its write, and Delta skips the retry's by the script's transaction."""
    with job.guard() as sw:
        _append(job, sw.table)
        if job.attempt == 1:
            raise ValueError("a check that fails once")
        sw.success()


@script(before=())
def options_on_a_new_table(job: WrongJob) -> None:
    """The first attempt creates the table and fails, and Delta skips the retry by the script's transaction."""
    with job.guard() as sw:
        _append(job, sw.table)
        if job.attempt == 1:
            raise ValueError("a check that fails once")
        sw.success()


@script()
def options_with_success_as_the_commit_point(job: WrongJob) -> None:
    """The block promises to undo the commit, and the commit holds the script's transaction."""
    with job.guard(commit_point="success") as sw:
        _append(job, sw.table)
        if job.attempt == 1:
            raise ValueError("a check that fails once")
        sw.success()


@script(after=MERGED)
def settings_of_a_merge(job: WrongJob) -> None:
    """The session's settings name the transaction of a MERGE, before the block."""
    _set(job)
    with job.guard() as sw:
        job.merge(sw.table)
        if job.attempt == 1:
            raise ValueError("a check that fails once")
        sw.success()


@script(after=MERGED)
def settings_in_the_block(job: WrongJob) -> None:
    """The settings name the transaction in the block, in place of the guard's own."""
    with job.guard() as sw:
        _set(job)
        job.merge(sw.table)
        if job.attempt == 1:
            raise ValueError("a check that fails once")
        sw.success()


@script()
def settings_that_are_unset(job: WrongJob) -> None:
    """The block unsets the settings by which the guard marks its commit."""
    with job.guard() as sw:
        for name in ("AppId", "Version"):
            job.spark.conf.unset(f"{_SETTING}{name}")
        job.append(sw.table)
        if job.attempt == 1:
            raise ValueError("a check that fails once")
        sw.success()


def _used_before(job: WrongJob) -> None:
    job.frame(BASE).write.format("delta").save(job.table)
    _append(job, job.table, (5, 6))


@script(prepare=_used_before, before=(*BASE, 5, 6))
def version_that_was_used(job: WrongJob) -> None:
    """Every run names the same version, so Delta skips the rows of all but the first."""
    with job.guard() as sw:
        _append(job, sw.table)
        sw.success()


@script(after=(*BASE, 10, 11, 12, *BATCH[3:]), parts=((*BASE, 10, 11, 12),))
def one_version_for_two_blocks(job: WrongJob) -> None:
    """Two blocks name one version, so Delta skips the rows of the second."""
    for step, ids in (("first", (10, 11, 12)), ("second", BATCH[3:])):
        with job.guard(step=step) as sw:
            _append(job, sw.table, ids)
            sw.success()
