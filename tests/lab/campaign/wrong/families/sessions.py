"""Other sessions, other contexts, and settings that change in the block."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tests.lab.campaign.wrong.script import BASE, BOTH, script

if TYPE_CHECKING:
    from tests.lab.campaign.wrong.job import WrongJob


@script(formats=BOTH)
def frame_of_another_session(job: WrongJob) -> None:
    """The frame belongs to another session than the guard's."""
    other = job.start_spark()
    with job.guard() as sw:
        job.append_frame(sw.table, other.range(10, 17, 1, 1))
        sw.success()


@script(formats=BOTH)
def frame_of_another_session_swallowed(job: WrongJob) -> None:
    """The frame belongs to another session than the guard's, and the script swallows the refusal."""
    other = job.start_spark()
    with job.guard() as sw:
        job.append_frame(sw.table, job.frame(range(10, 13)))
        with contextlib.suppress(Exception):
            job.append_frame(sw.table, other.range(13, 17, 1, 1))
        sw.success()


@script(formats=BOTH)
def guard_of_another_session(job: WrongJob) -> None:
    """The guard has a new session, and the statements the old one."""
    with job.guard(spark=job.start_spark()) as sw:
        job.append(sw.table)
        sw.success()


@script(formats=BOTH)
def spark_stopped_before_success(job: WrongJob) -> None:
    """The script stops Spark after the write, and calls success() last."""
    with job.guard() as sw:
        job.append(sw.table)
        job.spark.stop()
        sw.success()


@script(formats=BOTH, succeeds=(1, 2))
def spark_stopped_behind_success(job: WrongJob) -> None:
    """The script stops Spark in the block after success(): unusual, and right."""
    with job.guard() as sw:
        job.append(sw.table)
        sw.success()
        job.spark.stop()


@script(formats=BOTH)
def spark_started_anew(job: WrongJob) -> None:
    """The script stops and restarts Spark in the block, and the new one writes."""
    with job.guard() as sw:
        job.spark.stop()
        job.append_frame(sw.table, job.start_spark().range(10, 17, 1, 1))
        sw.success()


@script(formats=BOTH, succeeds=(1, 2))
def settings_that_are_harmless(job: WrongJob) -> None:
    """Settings, job group and description change in the block: unusual, and right."""
    with job.guard() as sw:
        job.spark.conf.set("spark.sql.shuffle.partitions", "3")
        job.spark.sparkContext.setJobDescription("load orders")
        job.spark.builder.config("spark.sql.ansi.enabled", "true").getOrCreate()
        job.append(sw.table)
        sw.success()


@script(formats=BOTH)
def job_group_of_its_own(job: WrongJob) -> None:
    """The script names a job group of its own in the block."""
    with job.guard() as sw:
        job.spark.sparkContext.setJobGroup("orders", "load orders", interruptOnCancel=True)
        job.append(sw.table)
        sw.success()


@script(short=("delta",))
def stock_log_store(job: WrongJob) -> None:
    """The block sets a log store that web pages advise, so its write bypasses the gate."""
    with job.guard() as sw:
        job.spark.conf.set("spark.delta.logStore.s3a.impl", "io.delta.storage.S3SingleDriverLogStore")
        job.append(sw.table)
        sw.success()


@script(after=BASE, others={"audit": (1, 2)}, attempts=1)
def empty_commits_left_out(job: WrongJob) -> None:
    """The block makes Delta skip commits that change nothing."""
    with job.guard() as sw:
        job.spark.conf.set("spark.databricks.delta.skipRecordingEmptyCommits", "true")
        job.append_to_other("audit", (1, 2))
        job.sql("DELETE FROM {table} WHERE id = 99", sw.table)
        sw.success()


@script(formats=BOTH)
def settings_reset(job: WrongJob) -> None:
    """The block resets the guard's settings in the session."""
    with job.guard() as sw:
        with contextlib.suppress(Exception):
            job.spark.sql("RESET spark.databricks.delta.write.txnAppId")
            job.spark.sql("RESET spark.databricks.delta.write.txnVersion")
            job.spark.sql("RESET spark.sql.catalog.safewriter")
        job.append(sw.table)
        if job.attempt == 1:
            raise ValueError("a check that fails once")
        sw.success()
