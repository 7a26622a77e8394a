"""A block that also writes tables of audits or rejected rows, which is right: it must succeed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter import SafeWriter
from tests.lab.campaign.wrong.script import BASE, BATCH, BOTH, ICEBERG, script

if TYPE_CHECKING:
    from tests.lab.campaign.wrong.job import WrongJob

_AUDIT = {"audit": (1, 2)}
_NOTHING = "MERGE INTO {table} t USING (SELECT 99 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE"


def _audit(job: WrongJob) -> None:
    job.append_to_other("audit", (1, 2))


@script(formats=BOTH, after=BASE, others=_AUDIT, attempts=1, succeeds=(1,), short=BOTH)
def merge_that_changes_nothing(job: WrongJob) -> None:
    """A row of audit beside a MERGE without a match."""
    with job.guard() as sw:
        _audit(job)
        job.sql(_NOTHING, sw.table)
        sw.success()


@script(formats=BOTH, after=BASE, others=_AUDIT, attempts=1, succeeds=(1,))
def audit_behind_a_merge_that_changes_nothing(job: WrongJob) -> None:
    """A row of audit after a MERGE without a match."""
    with job.guard() as sw:
        job.sql(_NOTHING, sw.table)
        _audit(job)
        sw.success()


@script(formats=BOTH, after=BASE, others=_AUDIT, attempts=1, succeeds=(1,))
def delete_that_changes_nothing(job: WrongJob) -> None:
    """A row of audit beside a DELETE of absent rows."""
    with job.guard() as sw:
        _audit(job)
        job.sql("DELETE FROM {table} WHERE id = 99", sw.table)
        sw.success()


@script(formats=BOTH, after=BASE, others=_AUDIT, attempts=1, succeeds=(1,))
def update_that_changes_nothing(job: WrongJob) -> None:
    """A row of audit beside an UPDATE of absent rows."""
    with job.guard() as sw:
        _audit(job)
        job.sql("UPDATE {table} SET id = 1 WHERE id = 99", sw.table)
        sw.success()


@script(formats=BOTH, after=BASE, others=_AUDIT, attempts=1, succeeds=(1,))
def append_of_no_row(job: WrongJob) -> None:
    """A row of audit beside an append of an empty frame."""
    with job.guard() as sw:
        _audit(job)
        job.append_frame(sw.table, job.frame().where("id > 99"))
        sw.success()


@script(after=BASE, others={"audit": (1, 2), "rejected": (7, 8)}, attempts=1, succeeds=(1,))
def two_tables_beside_a_merge_that_changes_nothing(job: WrongJob) -> None:
    """All rows are bad: they go to one table, the audit to another, and nothing to the guarded one."""
    with job.guard() as sw:
        job.append_to_other("rejected", (7, 8))
        job.sql(_NOTHING, sw.table)
        _audit(job)
        sw.success()


def _partitioned(job: WrongJob) -> None:
    frame = job.frame(BASE).selectExpr("id", "id % 2 AS part")
    frame.write.format("delta").partitionBy("part").save(job.table)


@script(prepare=_partitioned, after=BASE, others=_AUDIT, attempts=1, succeeds=(1,))
def dynamic_overwrite_by_no_row(job: WrongJob) -> None:
    """A row of audit beside a dynamic overwrite that touches no partition."""
    with job.guard() as sw:
        _audit(job)
        frame = job.frame().selectExpr("id", "id % 2 AS part").where("id > 99")
        frame.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "dynamic").save(sw.table)
        sw.success()


@script(formats=BOTH, others=_AUDIT, attempts=1, succeeds=(1,))
def audit_beside_an_append(job: WrongJob) -> None:
    """A row of audit before the batch, and one after it."""
    with job.guard() as sw:
        job.append_to_other("audit", (1,))
        job.append(sw.table)
        job.append_to_other("audit", (2,))
        sw.success()


@script(formats=BOTH, others=_AUDIT, succeeds=(1, 2))
def audit_only_if_the_write_is_new(job: WrongJob) -> None:
    """The retry asks whether an attempt has committed, and writes no audit twice."""
    with job.guard() as sw:
        job.append(sw.table)
        if not sw.already_committed:
            _audit(job)
        sw.success()


@script(formats=BOTH, others=_AUDIT, succeeds=(1, 2))
def audit_in_a_block_of_its_own(job: WrongJob) -> None:
    """Both tables are guarded, one block after the other."""
    with job.guard() as sw:
        job.append(sw.table)
        sw.success()
    with SafeWriter(job.spark, job.other("audit"), format="delta") as audit:
        job.frame((1, 2)).write.format("delta").mode("append").save(audit.table)
        audit.success()


@script(others=_AUDIT, attempts=1, succeeds=(1,))
def audit_inside_the_table_s_folder(job: WrongJob) -> None:
    """The audit table is in a folder of the guarded one, and another audit table elsewhere."""
    with job.guard() as sw:
        job.append(f"{sw.table}/_audit", (1,))
        _audit(job)
        job.append(sw.table)
        sw.success()


@script(parts=((*BASE, 1, 2),))
def audit_into_the_guarded_table(job: WrongJob) -> None:
    """The script writes the rows of audit to the guarded table by mistake, as a second statement."""
    with job.guard() as sw:
        job.append(sw.table)
        job.append(sw.table, (1, 2))
        sw.success()


@script(
    formats=ICEBERG, after=(1, 2, 3, 4, *BATCH), parts=((1, 2, 3, 4),), attempts=1, succeeds=(1,), short=("iceberg",)
)
def another_session_of_the_application(job: WrongJob) -> None:
    """Another session of the same application deletes other rows of the table while the block is open."""
    other = job.start_spark()
    with job.guard() as sw:
        job.append(sw.table)
        other.sql(f"DELETE FROM {job.table} WHERE id = 0")
        sw.success()


@script(after=(*BASE, 5, 6, *BATCH), attempts=1, succeeds=(1,))
def another_session_before_the_write(job: WrongJob) -> None:
    """The script first appends to the table outside of the block: two writes, of which it guards one."""
    job.append(job.table, (5, 6))
    with job.guard() as sw:
        job.append(sw.table)
        sw.success()


@script(others={"second": BATCH, "made": (1, 2)})
def another_table_that_is_there_in_a_skipped_block(job: WrongJob) -> None:
    """On the retry the append is skipped, and another table, whose path begins with the block's, exists already."""
    session = job.start_spark()
    with job.guard() as sw:
        job.append(sw.table)
        sw.success()
        job.frame((1, 2)).write.format("delta").save(job.other("made"))
        with job.guard(job.other("second"), spark=session) as second:
            if job.attempt == 1:
                raise ValueError("a check that fails once")
            session.range(BATCH[0], BATCH[-1] + 1, 1, 1).write.format("delta").mode("append").save(second.table)
            second.success()
