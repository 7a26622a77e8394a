"""Puts SafeWriter on a Spark session that the image has not configured: plain PySpark, a cluster, EMR, Glue."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from safewriter.errors import UsageError
from safewriter.tables.release import check_pyspark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["LOG_STORE", "SETTINGS", "configure_spark", "log_store_jar"]

_NAME: Final = "soal-logstore.jar"
_PACKAGED: Final = Path(__file__).with_name("jars") / _NAME
_MADE_BY_SETUP: Final = Path(__file__).parents[1] / ".soal" / "jars" / _NAME
LOG_STORE: Final = "io.soal.logstore.ConditionalS3LogStore"
"""The class by which Delta commits."""
_JARS: Final = "spark.jars"
_STARTED: Final = "PYSPARK_GATEWAY_PORT"
"""spark-submit sets it to the port of the driver's JVM."""
SETTINGS: Final = {
    "spark.delta.logStore.s3a.impl": LOG_STORE,
    "spark.delta.logStore.s3.impl": LOG_STORE,
    # Without it Delta commits a second time where the reply to a commit was lost.
    "spark.databricks.delta.commit.idempotencyCheck.enabled": "true",
    # A guarded block's statements find its Iceberg table there. Spark loads a catalog when a statement names it.
    "spark.sql.catalog.safewriter": "io.soal.iceberg.StagingCatalog",
    "spark.sql.catalog.safewriter.cache-enabled": "false",
}
"""What a session needs besides the jar."""


def configure_spark(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Set what SafeWriter needs on a `SparkSession.builder`, and return the builder.

    It sets Delta's log store for `s3a://` and `s3://` and the catalog `safewriter`, and adds the log store's jar to the
    builder's `spark.jars`. Under `spark-submit`, which has started Java already, give the jar by `--jars`. It does not
    set up Delta, Iceberg or S3A. Call it before `getOrCreate()`, on the driver. Raises `UsageError` if the jar is not
    there, `UnsupportedError` if PySpark is not of Spark 4.1.
    """
    check_pyspark()
    for key, value in SETTINGS.items():
        builder.config(key, value)
    if _STARTED not in os.environ:
        jars = str(getattr(builder, "_options", {}).get(_JARS, ""))
        builder.config(_JARS, f"{jars},{log_store_jar()}".removeprefix(","))
    return builder


def log_store_jar() -> Path:
    """Return the path of the log store's jar, for `--jars`. Raises `UsageError` if it is not there."""
    for jar in (_PACKAGED, _MADE_BY_SETUP):
        if jar.is_file():
            return jar
    raise UsageError(f"{_PACKAGED} is missing; install the package from its wheel, or run scripts/setup in a clone")
