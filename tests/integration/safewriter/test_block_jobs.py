"""The Spark jobs of a block, as far as Spark remembers them."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
from py4j.java_gateway import JavaClass
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


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
    assert succeeded(spark, group) is True
    assert succeeded(spark, f"{group}-other") is False


def test_a_group_with_a_failed_job_has_not_succeeded(spark: SparkSession, group: str) -> None:
    """Earlier successes do not count."""
    spark.range(3).count()
    with pytest.raises(PySparkException, match="on order"):
        spark.range(1).selectExpr("raise_error('on order')").collect()
    assert succeeded(spark, group) is False
