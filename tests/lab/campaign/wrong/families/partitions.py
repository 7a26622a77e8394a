"""Partitions without a value, and shallow clones: what an undo must restore."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.lab.campaign.wrong.script import script

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.lab.campaign.wrong.job import WrongJob

_ROWS = (1, 2, 12)
_CLONED = (1, 2, 3)
_MADE_ANEW = (1, 12, 13)
_PART = "CASE WHEN id IN (2, 13) THEN NULL ELSE id DIV 10 END AS part"


def _make(job: WrongJob) -> None:
    """Make the ids 1, 2 and 12, of which 2 is in the partition NULL."""
    frame = job.frame(range(20)).where("id IN (1, 2, 12)").selectExpr("id", _PART)
    frame.write.format("delta").partitionBy("part").save(job.table)


def _overwrite(job: WrongJob, table: str, ids: Sequence[int]) -> None:
    """Overwrite only the partitions of these rows."""
    frame = job.frame(ids).selectExpr("id", _PART)
    frame.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "dynamic").save(table)


@script(prepare=_make, before=_ROWS, after=_MADE_ANEW, short=("delta",))
def overwrite_of_the_partition_null(job: WrongJob) -> None:
    """The first attempt overwrites it and fails, and the retry overwrites it again."""
    with job.guard() as sw:
        _overwrite(job, sw.table, (13,))
        if job.attempt == 1:
            raise ValueError("a check that fails once")
        sw.success()


@script(prepare=_make, before=_ROWS, after=_MADE_ANEW, parts=((1, 12),))
def delete_before_an_overwrite_of_it(job: WrongJob) -> None:
    """A block deletes the row there and fails, and the next one overwrites the partition."""
    if job.attempt == 1:
        with job.guard(step="delete") as sw:
            job.sql("DELETE FROM {table} WHERE id = 2", sw.table)
            raise ValueError("a check that fails once")
    with job.guard(step="overwrite") as sw:
        _overwrite(job, sw.table, (13,))
        sw.success()


@script(prepare=_make, before=_ROWS, after=(13,), parts=((),))
def overwrite_of_all_before_an_overwrite_of_it(job: WrongJob) -> None:
    """A block empties the table and fails; the retry overwrites all of it."""
    with job.guard() as sw:
        job.frame((13,)).selectExpr("id", _PART).write.format("delta").mode("overwrite").save(sw.table)
        if job.attempt == 1:
            raise ValueError("a check that fails once")
        sw.success()


@script(prepare=_make, before=_ROWS, after=(*_ROWS, 21, 22), succeeds=(2,))
def append_of_a_new_partition(job: WrongJob) -> None:
    """The first attempt adds a partition and fails; the retry adds it again."""
    with job.guard() as sw:
        job.append_frame(sw.table, job.frame((21, 22)).selectExpr("id", _PART))
        if job.attempt == 1:
            raise ValueError("a check that fails once")
        sw.success()


@script(prepare=_make, before=_ROWS, after=_MADE_ANEW, parts=((*_ROWS, 13),))
def append_before_an_overwrite_of_it(job: WrongJob) -> None:
    """A block appends to the partition and fails, and the next one overwrites the partition."""
    if job.attempt == 1:
        with job.guard(step="append") as sw:
            job.append_frame(sw.table, job.frame((13,)).selectExpr("id", _PART))
            raise ValueError("a check that fails once")
    with job.guard(step="overwrite") as sw:
        _overwrite(job, sw.table, (13,))
        sw.success()


def _clone(job: WrongJob) -> None:
    job.append_to_other("source", _CLONED)
    job.spark.sql(f"CREATE TABLE delta.`{job.table}` SHALLOW CLONE delta.`{job.other('source')}`")


@script(prepare=_clone, before=_CLONED, after=(1, 3))
def delete_in_a_shallow_clone(job: WrongJob) -> None:
    """The table's files are in another table's folder; the first attempt deletes rows of them and fails."""
    with job.guard() as sw:
        job.sql("DELETE FROM {table} WHERE id = 2", sw.table)
        if job.attempt == 1:
            raise ValueError("a check that fails once")
        sw.success()


@script(prepare=_clone, before=_CLONED, after=(*_CLONED, 21, 22))
def append_to_a_shallow_clone(job: WrongJob) -> None:
    """The first attempt appends to a shallow clone and fails."""
    with job.guard() as sw:
        job.append(sw.table, (21, 22))
        if job.attempt == 1:
            raise ValueError("a check that fails once")
        sw.success()


@script(prepare=_make, before=_ROWS, after=_ROWS)
def clone_made_in_the_block(job: WrongJob) -> None:
    """The block makes a shallow clone of its table as a backup, and writes nothing."""
    with job.guard() as sw:
        copy = job.other(f"copy-{job.attempt}")
        job.spark.sql(f"CREATE TABLE delta.`{copy}` SHALLOW CLONE delta.`{sw.table}`")
        sw.success()
