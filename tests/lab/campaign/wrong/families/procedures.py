"""Procedures, branches and Java calls that write an Iceberg table past the block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.lab.campaign.wrong.script import BASE, BATCH, ICEBERG, script

if TYPE_CHECKING:
    from tests.lab.campaign.wrong.job import WrongJob

_STAGED = tuple(range(20, 23))


def _call(job: WrongJob, procedure: str, arguments: str) -> None:
    catalog, _, name = job.table.partition(".")
    job.spark.sql(f"CALL {catalog}.system.{procedure}(table => '{name}', {arguments})")


def _files(job: WrongJob) -> str:
    """Write Parquet files for a procedure that adds files, and return their folder."""
    folder = f"{job.lake}/files-{job.attempt}"
    job.frame().write.parquet(folder)
    return f"source_table => '`parquet`.`{folder}`'"


@script(formats=ICEBERG)
def add_files(job: WrongJob) -> None:
    """A procedure adds the batch's files, and so writes main at once."""
    with job.guard() as sw:
        _call(job, "add_files", _files(job))
        sw.success()


@script(formats=ICEBERG, short=ICEBERG)
def add_files_and_an_error_behind(job: WrongJob) -> None:
    """A procedure adds the files, then the first attempt fails: the rows are in main, whatever happens to the block."""
    with job.guard() as sw:
        _call(job, "add_files", _files(job))
        if job.attempt == 1:
            raise ValueError("a check that fails once")
        sw.success()


@script(formats=ICEBERG, after=(*BASE, *BATCH, *_STAGED), parts=((*BASE, *BATCH),))
def add_files_beside_a_write(job: WrongJob) -> None:
    """A procedure adds a part, and the block's name gets the other part."""
    with job.guard() as sw:
        _call(job, "add_files", _files(job))
        job.append(sw.table, _STAGED)
        sw.success()


def _staged(job: WrongJob) -> None:
    job.spark.sql(f"CREATE TABLE {job.table} (id LONG) USING iceberg TBLPROPERTIES ('write.wap.enabled' = 'true')")
    job.append(job.table, BASE)
    job.spark.conf.set("spark.wap.id", "audit")
    job.append(job.table)
    job.spark.conf.unset("spark.wap.id")


def _staged_snapshot(job: WrongJob) -> int:
    found = job.spark.sql(f"SELECT snapshot_id FROM {job.table}.snapshots WHERE summary['wap.id'] = 'audit'")
    return int(found.collect()[0][0])


@script(formats=ICEBERG, prepare=_staged, is_foreign=True)
def publish_changes(job: WrongJob) -> None:
    """The block publishes another job's staged changes by a procedure, and then the first attempt fails."""
    with job.guard() as sw:
        _call(job, "publish_changes", "wap_id => 'audit'")
        if job.attempt == 1:
            raise ValueError("a check that fails once")
        sw.success()


@script(formats=ICEBERG, prepare=_staged, is_foreign=True)
def cherrypick_snapshot(job: WrongJob) -> None:
    """The block publishes another job's staged changes by the snapshot's number."""
    with job.guard() as sw:
        _call(job, "cherrypick_snapshot", f"snapshot_id => {_staged_snapshot(job)}L")
        if job.attempt == 1:
            raise ValueError("a check that fails once")
        sw.success()


def _of_two_snapshots(job: WrongJob) -> None:
    job.spark.sql(f"CREATE TABLE {job.table} (id LONG) USING iceberg")
    for ids in ((0, 1), (2, 3, 4)):
        job.append(job.table, ids)


def _roll_back(job: WrongJob) -> None:
    first = job.spark.sql(f"SELECT snapshot_id FROM {job.table}.snapshots ORDER BY committed_at LIMIT 1")
    _call(job, "rollback_to_snapshot", f"snapshot_id => {first.collect()[0][0]}L")


@script(formats=ICEBERG, prepare=_of_two_snapshots, after=(0, 1, *BATCH), attempts=1, succeeds=(1,))
def rollback_before_the_write(job: WrongJob) -> None:
    """The block sets main back to its first snapshot before the append: right, if done only once."""
    with job.guard() as sw:
        _roll_back(job)
        job.append(sw.table)
        sw.success()


@script(formats=ICEBERG)
def rollback_behind_the_write(job: WrongJob) -> None:
    """The block sets main back after the append, since a check has failed, and raises."""
    with job.guard() as sw:
        job.append(sw.table)
        _roll_back(job)
        raise ValueError("a check has failed")


@script(formats=ICEBERG, prepare=_of_two_snapshots)
def compaction_of_the_plain_name(job: WrongJob) -> None:
    """The block rewrites the table's files by its own name after the append."""
    with job.guard() as sw:
        job.append(sw.table)
        _call(job, "rewrite_data_files", "options => map('min-input-files', '1', 'rewrite-all', 'true')")
        sw.success()


@script(formats=ICEBERG, prepare=_of_two_snapshots)
def snapshots_expired_in_the_block(job: WrongJob) -> None:
    """The block expires all snapshots but the last one."""
    with job.guard() as sw:
        job.append(sw.table)
        _call(job, "expire_snapshots", "older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1")
        sw.success()


@script(formats=ICEBERG, after=(), short=ICEBERG)
def delete_by_java(job: WrongJob) -> None:
    """The block deletes all rows by way of Java, past every session, and writes nothing itself."""
    with job.guard() as sw:
        jvm: Any = job.spark._jvm
        table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(job.spark._jsparkSession, job.table)
        table.newDelete().deleteFromRowFilter(jvm.org.apache.iceberg.expressions.Expressions.alwaysTrue()).commit()
        if job.attempt == 1:
            raise ValueError("a check that fails once")
        sw.success()


@script(formats=ICEBERG)
def a_branch_of_its_own(job: WrongJob) -> None:
    """The block writes the rows to a new branch, which is never merged into main."""
    job.spark.sql(f"ALTER TABLE {job.table} CREATE BRANCH IF NOT EXISTS audit")
    with job.guard() as sw:
        job.append(f"{job.table}.branch_audit")
        sw.success()


@script(formats=ICEBERG)
def a_branch_brought_into_main(job: WrongJob) -> None:
    """The block fast-forwards main to its own branch: write-audit-publish by hand."""
    job.spark.sql(f"ALTER TABLE {job.table} CREATE OR REPLACE BRANCH audit")
    with job.guard() as sw:
        job.append(f"{job.table}.branch_audit")
        catalog, _, name = job.table.partition(".")
        job.spark.sql(f"CALL {catalog}.system.fast_forward('{name}', 'main', 'audit')")
        if job.attempt == 1:
            raise ValueError("a check that fails once")
        sw.success()


@script(formats=ICEBERG)
def schema_of_the_plain_name(job: WrongJob) -> None:
    """The block adds a column by the table's own name after the append."""
    with job.guard() as sw:
        job.append(sw.table)
        job.spark.sql(f"ALTER TABLE {job.table} ADD COLUMNS (more STRING)")
        sw.success()
