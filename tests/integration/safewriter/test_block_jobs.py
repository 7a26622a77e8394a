"""The Spark jobs and tasks of a block, as far as Spark remembers them."""

from __future__ import annotations

import threading
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.util import inheritable_thread_target

from safewriter.tables.spark import SparkScope
from soal.testing.s3.rules import Match, Rule
from tests.support.network_faults import Late

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from soal.testing.s3 import EmbeddedS3
    from tests.support.lake import Lake

pytestmark = pytest.mark.spark


def jobs_are_recorded(spark: SparkSession) -> None:
    spark._jsparkSession.sparkContext().listenerBus().waitUntilEmpty(60_000)


def succeeded(spark: SparkSession, group: str) -> Any:
    client = spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]
    return JavaClass("io.soal.logstore.BlockJobs", client).allTasksSucceeded(spark._jsparkSession, group)


@pytest.fixture
def group(spark: SparkSession) -> Iterator[str]:
    """A group of jobs for this test."""
    name = uuid.uuid4().hex
    spark.sparkContext.setJobGroup(name, "test")
    yield name
    for key in ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"):
        spark.sparkContext.setLocalProperty(key, None)  # type: ignore[arg-type]  # None removes it


def test_a_group_without_jobs_has_not_succeeded(spark: SparkSession, group: str) -> None:
    """No task has succeeded in it."""
    assert succeeded(spark, group) is False


def test_a_group_has_succeeded_where_each_of_its_jobs_did(spark: SparkSession, group: str) -> None:
    """The second job skips a stage of the first; one of another group does not count."""
    shuffled = spark.sparkContext.parallelize([(1, 1), (2, 2)], 2).reduceByKey(max)
    assert (shuffled.count(), shuffled.count()) == (2, 2)
    jobs_are_recorded(spark)
    assert succeeded(spark, group) is True
    assert succeeded(spark, f"{group}-other") is False


def test_a_group_with_a_failed_job_has_not_succeeded(spark: SparkSession, group: str) -> None:
    """Earlier successes do not count."""
    spark.range(3).count()
    with pytest.raises(PySparkException, match="on order"):
        spark.range(1).selectExpr("raise_error('on order')").collect()
    jobs_are_recorded(spark)
    assert succeeded(spark, group) is False


def test_a_group_with_a_killed_task_has_not_succeeded(
    spark: SparkSession, s3: EmbeddedS3, lake: Lake, group: str
) -> None:
    """Spark counts it apart from failed ones, and repeats it; its file stays, like that of a speculation's loser."""
    first_upload = Late(503)
    scheduler = spark._jsparkSession.sparkContext().taskScheduler()
    first_upload.end = lambda: scheduler.killTaskAttempt(scheduler.nextTaskId() - 1, True, "on order")  # noqa: FBT003 - Java's
    s3.wire.add(Rule(Match(operations={"PutObject"}, key=f"{lake.name}/.*part-"), first_upload))
    spark.range(1, numPartitions=1).write.parquet(lake.table)
    jobs_are_recorded(spark)
    assert succeeded(spark, group) is False


def test_a_group_with_a_repeated_stage_has_not_succeeded(spark: SparkSession, group: str, tmp_path: Path) -> None:
    """Spark's last record of the stage is of its second attempt, in which each task ended well."""
    tried = tmp_path / "tried"

    def fail_at_first(rows: Iterable[int]) -> Iterable[tuple[int, int]]:
        if not tried.exists():
            tried.mkdir()
            raise ValueError("on order")
        return ((row, row) for row in rows)

    # Spark repeats a stage with a barrier as a whole. Lost files of a shuffle would do it, too, but after them a local
    # executor cannot register again, and ends the JVM with its sixtieth heartbeat.
    staged = spark.sparkContext.parallelize([1], 1).barrier().mapPartitions(fail_at_first)
    assert staged.reduceByKey(max).collect() == [(1, 1)]
    jobs_are_recorded(spark)
    assert succeeded(spark, group) is False


def test_a_group_whose_jobs_spark_has_not_recorded_yet_has_not_succeeded(spark: SparkSession, group: str) -> None:
    """Of two jobs the record of the first alone does not count."""
    spark.range(3).count()
    jobs_are_recorded(spark)
    threads = JavaClass("java.lang.Thread", spark.sparkContext._gateway._gateway_client).getAllStackTraces()  # type: ignore[union-attr]
    (recording,) = (one for one in threads.keySet() if one.getName() == "spark-listener-group-appStatus")
    recording.suspend()
    try:
        spark.range(3).count()
        assert succeeded(spark, group) is False
    finally:
        recording.resume()
    jobs_are_recorded(spark)
    assert succeeded(spark, group) is True


def test_a_block_is_not_quiet_while_a_task_outlives_its_job(spark: SparkSession, s3: EmbeddedS3, lake: Lake) -> None:
    """Its upload has no answer yet. Spark's records of its executors may not tell of a task that began a moment ago."""
    scope, upload, cancelled = SparkScope(spark, lake.table), Late("waits"), list[str]()
    scope.begin_group(uuid.uuid4().hex)
    spark.sparkContext.setLocalProperty("spark.job.interruptOnCancel", "false")
    spark.conf.set("spark.sql.adaptive.enabled", "false")  # the second stage begins at the end of the first

    def write() -> None:
        try:
            spark.range(4).repartition(1).write.parquet(lake.table)
        except Py4JJavaError as error:
            cancelled.append(str(error))

    rule = s3.wire.add(Rule(Match(operations={"PutObject"}, key=f"{lake.name}/.*part-"), upload))
    writing = threading.Thread(target=inheritable_thread_target(spark)(write))
    writing.start()
    try:
        assert rule.fired(timeout_s=60)
        scope.cancel()
        writing.join(60)
        assert not scope.wait_until_quiet(1)
    finally:
        upload.release()
        scope.restore()
        spark.conf.unset("spark.sql.adaptive.enabled")
    assert scope.wait_until_quiet(60)
    assert "SPARK_JOB_CANCELLED" in cancelled[0]
