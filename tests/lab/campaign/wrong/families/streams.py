"""Streams: mistakes in foreachBatch, and around a query."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from safewriter import SafeWriter
from tests.lab.campaign.wrong.script import BASE, script

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from tests.lab.campaign.wrong.job import WrongJob

_NEW = tuple(range(10, 17))
_FIRST = (10, 11, 12, 13)
_HALF = (*BASE, *_FIRST)


def _feed(job: WrongJob) -> None:
    """Make the table, and a source of two batches."""
    job.append(job.table, BASE)
    for ids in (_FIRST, (14, 15, 16)):
        job.append_to_other("source", ids)


def _run(job: WrongJob, write: Callable[[DataFrame, int], None]) -> None:
    """Load all new files of the source into the table."""
    source = (
        job.spark.readStream.format("delta").options(maxFilesPerTrigger=1, startingVersion=0).load(job.other("source"))
    )
    query = source.writeStream.foreachBatch(write).option("checkpointLocation", job.other("checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()


def _append(frame: DataFrame, table: str, **options: Any) -> None:
    frame.write.format("delta").mode("append").options(**options).save(table)


@script(prepare=_feed, parts=(_HALF,), succeeds=(1, 2))
def batches_that_are_guarded(job: WrongJob) -> None:
    """Each batch is a block: right, and the reference for the others."""

    def write(frame: DataFrame, _: int) -> None:
        with SafeWriter(frame.sparkSession, job.table) as sw:
            _append(frame, sw.table)
            sw.success()

    _run(job, write)


@script(prepare=_feed, parts=(_HALF,), short=("delta",))
def transaction_of_the_batch(job: WrongJob) -> None:
    """A batch names Delta's transaction, as Delta's own page shows; the first attempt fails after its first batch."""

    def write(frame: DataFrame, batch_id: int) -> None:
        with SafeWriter(frame.sparkSession, job.table) as sw:
            _append(frame, sw.table, txnAppId="stream", txnVersion=batch_id)
            if job.attempt == 1:
                raise ValueError("a check that fails once")
            sw.success()

    _run(job, write)


@script(prepare=_feed, parts=(_HALF,))
def errors_swallowed_in_the_batch(job: WrongJob) -> None:
    """The script logs and skips a batch whose write fails, and the stream continues."""

    def write(frame: DataFrame, batch_id: int) -> None:
        with SafeWriter(frame.sparkSession, job.table) as sw:
            with contextlib.suppress(Exception):
                _append(frame.selectExpr("id", "1 AS extra") if batch_id == 1 else frame, sw.table)
            sw.success()

    _run(job, write)


@script(prepare=_feed, parts=(_HALF,))
def two_statements_in_the_batch(job: WrongJob) -> None:
    """A batch is written in two halves, and the refusal of the second is swallowed."""

    def write(frame: DataFrame, _: int) -> None:
        with SafeWriter(frame.sparkSession, job.table) as sw:
            _append(frame.where("id % 2 = 0"), sw.table)
            with contextlib.suppress(Exception):
                _append(frame.where("id % 2 = 1"), sw.table)
            sw.success()

    _run(job, write)


@script(prepare=_feed, parts=(_HALF,))
def session_of_the_script(job: WrongJob) -> None:
    """The guard has the script's session, and the batch one of its own."""

    def write(frame: DataFrame, _: int) -> None:
        with SafeWriter(job.spark, job.table) as sw:
            _append(frame, sw.table)
            sw.success()

    _run(job, write)


@script(prepare=_feed, after=BASE, others={"audit": (1, 2)}, attempts=1, succeeds=(1,))
def audit_beside_a_merge_that_changes_nothing(job: WrongJob) -> None:
    """Each batch writes a row of audit, and a MERGE without a match: unusual, and right."""

    def write(frame: DataFrame, batch_id: int) -> None:
        with SafeWriter(frame.sparkSession, job.table) as sw:
            _append(frame.sparkSession.range(batch_id + 1, batch_id + 2, 1, 1), job.other("audit"))
            frame.createOrReplaceTempView("batch")
            merge = f"MERGE INTO delta.`{sw.table}` t USING batch s ON t.id = s.id + 100 WHEN MATCHED THEN DELETE"
            frame.sparkSession.sql(merge)
            sw.success()

    _run(job, write)


@script(prepare=_feed, parts=(_HALF,), others={"copy": _NEW}, attempts=1, succeeds=(1,))
def two_tables_in_the_batch(job: WrongJob) -> None:
    """Each batch goes to two tables, a block for each: unusual, and right."""

    def write(frame: DataFrame, _: int) -> None:
        for table in (job.table, job.other("copy")):
            with SafeWriter(frame.sparkSession, table) as sw:
                _append(frame, sw.table)
                sw.success()

    _run(job, write)


@script(prepare=_feed, parts=(_HALF,))
def block_around_the_query(job: WrongJob) -> None:
    """The block surrounds the query, which writes the table in a session of its own."""
    source = job.spark.readStream.format("delta").load(job.other("source"))
    with job.guard() as sw:
        query = source.writeStream.format("delta").option("checkpointLocation", job.other("checkpoint"))
        query.trigger(availableNow=True).start(sw.table).awaitTermination()
        sw.success()


@script(prepare=_feed)
def query_into_a_name(job: WrongJob) -> None:
    """The query writes a table of the function's own catalog."""
    source = job.spark.readStream.format("delta").load(job.other("source"))
    with job.guard() as sw:
        query = source.writeStream.format("delta").option("checkpointLocation", job.other("checkpoint"))
        query.trigger(availableNow=True).toTable("orders_clean").awaitTermination()
        sw.success()
