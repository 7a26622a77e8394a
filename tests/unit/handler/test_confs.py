from __future__ import annotations

import pytest

from handler.confs import check_conf
from handler.usage import UsageError


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.sql.shuffle.partitions", "8"),
        ("spark.driver.memory", "1500m"),
        ("spark.driver.cores", "2"),
        ("spark.executor.memory", "4g"),
        ("spark.sql.warehouse.dir", "s3a://lake/warehouse"),
        ("spark.sql.streaming.checkpointLocation", "/tmp/here"),
        ("spark.sql.catalog.ice", "org.apache.iceberg.spark.SparkCatalog"),
        ("spark.databricks.delta.optimizeWrite.enabled", "true"),
        ("spark.databricks.delta.commitInfo.userMetadata", "note"),
        ("spark.hadoop.fs.s3a.bucket.open.aws.credentials.provider", "org.apache…Anonymous"),
        ("spark.hadoop.fs.s3a.endpoint.region", "eu-west-1"),
        ("spark.sql.catalogImplementation", "in-memory"),
    ],
)
def test_what_a_job_may_set(key: str, value: str) -> None:
    """The rules do not stand in the way of ordinary tuning."""
    check_conf({key: value}, "conf")


@pytest.mark.parametrize(
    "key",
    [
        "spark.master",
        "SPARK.MASTER",
        "spark.submit.deployMode",
        "spark.jars",
        "spark.jars.repositories",
        "spark.remote",
        "spark.driver.extraLibraryPath",
        "spark.plugins",
        "spark.hadoop.fs.s3a.impl",
        "spark.hadoop.fs.s3a.bucket.lake.secret.key",
        "spark.hadoop.fs.s3a.bucket.lake.endpoint",
        "spark.hadoop.fs.s3a.create.conditional.enabled",
        "spark.databricks.delta.testOnly.dataFileNamePrefix",
        "spark.sql.catalog.spark_catalog",
        "spark.delta.logStore.gs.impl",
        "spark.wap.id",
        "spark.yarn.appMasterEnv.PATH",
        "spark.kubernetes.driverEnv.PATH",
        "spark.pyspark.python",
        "spark.driver.bindAddress",
    ],
)
def test_what_would_leave_the_sandbox_or_switch_off_the_guard(key: str) -> None:
    """It is refused, in whatever letters, with a remedy."""
    with pytest.raises(UsageError, match=r"may not be set by a job: .+"):
        check_conf({key: "x"}, "conf")


@pytest.mark.parametrize(
    "value", ["/", "/etc", "file:/etc", "FILE:///etc", "/tmp/../etc", "/tmp", "//tmp/../../x", "/tmpx"]
)
def test_local_paths_outside_tmp(value: str) -> None:
    """Nothing else can be written."""
    with pytest.raises(UsageError, match="outside /tmp"):
        check_conf({"spark.eventLog.dir": value}, "conf")


def test_too_many_settings() -> None:
    """There is a bound on their number."""
    with pytest.raises(UsageError, match="201 settings"):
        check_conf({f"spark.a.{number}": "1" for number in range(201)}, "conf")


def test_a_key_with_a_line_end_cannot_smuggle_another_one_in() -> None:
    """It is no name of a setting."""
    with pytest.raises(UsageError):
        check_conf({"spark.a\nspark.master": "x"}, "conf")
