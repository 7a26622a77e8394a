"""Statements of maintenance and schema in a block on a Delta table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.lab.campaign.wrong.script import BASE, BATCH, script

if TYPE_CHECKING:
    from tests.lab.campaign.wrong.job import WrongJob

_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


@script()
def optimize_behind_the_write(job: WrongJob) -> None:
    """The block compacts the table as a second statement."""
    with job.guard() as sw:
        job.append(sw.table)
        job.sql("OPTIMIZE {table}", sw.table)
        sw.success()


def _of_small_files(job: WrongJob) -> None:
    for ids in ((0, 1), (2, 3, 4)):
        job.append(job.table, ids)


@script(prepare=_of_small_files, after=BASE)
def optimize_alone(job: WrongJob) -> None:
    """The block compacts the table, and writes no row."""
    with job.guard() as sw:
        job.sql("OPTIMIZE {table}", sw.table)
        sw.success()


@script()
def vacuum_in_the_block(job: WrongJob) -> None:
    """The block deletes all old files after its write, without the retention time."""
    job.spark.conf.set(_CHECK, "false")
    with job.guard() as sw:
        job.append(sw.table)
        job.sql("VACUUM {table} RETAIN 0 HOURS", sw.table)
        if job.attempt == 1:
            raise ValueError("a check that fails once")
        sw.success()


@script(after=(*BASE[3:], *BATCH))
def vacuum_behind_a_delete(job: WrongJob) -> None:
    """The block deletes rows and vacuums their files, so that no undo can restore them; then it fails."""
    job.spark.conf.set(_CHECK, "false")
    with job.guard(step="delete") as sw:
        job.sql("DELETE FROM {table} WHERE id < 3", sw.table)
        job.sql("VACUUM {table} RETAIN 0 HOURS", sw.table)
        sw.success()
    with job.guard(step="append") as sw:
        job.append(sw.table)
        sw.success()


@script(prepare=_of_small_files, after=(0, 1, *BATCH), parts=((0, 1),))
def restore_before_the_write(job: WrongJob) -> None:
    """The block restores an older version, and appends to that."""
    with job.guard() as sw:
        job.sql("RESTORE TABLE {table} TO VERSION AS OF 0", sw.table)
        job.append(sw.table)
        sw.success()


@script(prepare=_of_small_files, after=(0, 1))
def restore_alone(job: WrongJob) -> None:
    """The block only restores an older version."""
    with job.guard() as sw:
        job.sql("RESTORE TABLE {table} TO VERSION AS OF 0", sw.table)
        sw.success()


@script()
def column_before_the_write(job: WrongJob) -> None:
    """The block adds a column, and then appends rows."""
    with job.guard() as sw:
        job.sql("ALTER TABLE {table} ADD COLUMNS (more STRING)", sw.table)
        job.append(sw.table)
        sw.success()


@script()
def property_behind_the_write(job: WrongJob) -> None:
    """The block records in a table property what it has loaded."""
    with job.guard() as sw:
        job.append(sw.table)
        job.sql("ALTER TABLE {table} SET TBLPROPERTIES ('loaded' = '2026-11-25')", sw.table)
        sw.success()


@script(after=(), parts=((*BATCH,),))
def create_or_replace_without_rows(job: WrongJob) -> None:
    """The block replaces the table by an empty one."""
    with job.guard() as sw:
        job.sql("CREATE OR REPLACE TABLE {table} (id LONG) USING delta", sw.table)
        sw.success()


@script(after=BATCH, parts=((),))
def truncate_before_the_write(job: WrongJob) -> None:
    """The block empties the table, and appends the new rows."""
    with job.guard() as sw:
        job.sql("DELETE FROM {table}", sw.table)
        job.append(sw.table)
        sw.success()


@script(succeeds=(1, 2))
def questions_about_the_table(job: WrongJob) -> None:
    """The block reads history and detail beside its write: unusual, and right."""
    with job.guard() as sw:
        job.sql("DESCRIBE HISTORY {table}", sw.table).collect()
        job.append(sw.table)
        job.sql("DESCRIBE DETAIL {table}", sw.table).collect()
        sw.success()


@script(after=(3, 4))
def delete_by_the_python_api(job: WrongJob) -> None:
    """The block deletes the rows by DeltaTable instead of a statement, and then the first attempt fails."""
    with job.guard() as sw:
        _delta_table(job, sw.table).delete("id < 3")
        if job.attempt == 1:
            raise ValueError("a check that fails once")
        sw.success()


@script()
def compaction_by_java(job: WrongJob) -> None:
    """The block compacts the table by way of Java after the write."""
    with job.guard() as sw:
        job.append(sw.table)
        _delta_table(job, sw.table).optimize().executeCompaction()
        sw.success()


@script(after=(*BASE, *BATCH))
def manifest_behind_the_write(job: WrongJob) -> None:
    """The block writes the manifest that other engines read."""
    with job.guard() as sw:
        job.append(sw.table)
        _delta_table(job, sw.table).generate("symlink_format_manifest")
        sw.success()


def _delta_table(job: WrongJob, table: str) -> Any:
    jvm: Any = job.spark._jvm
    return jvm.io.delta.tables.DeltaTable.forPath(job.spark._jsparkSession, table)
