"""The job of test_strays that restarts Spark inside its block: `python -m …restarting_job TABLE`."""

from __future__ import annotations

import os
import sys
import uuid
from typing import TYPE_CHECKING

from safewriter import SafeWriter
from tests.support.spark_session import build_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session() -> SparkSession:
    return build_session(os.environ["AWS_ENDPOINT_URL_S3"], "local[1]", {"spark.ui.enabled": "false"})


def append(spark: SparkSession, table: str, rows: int) -> None:
    spark.range(0, rows, 1, 1).write.format("delta").mode("append").save(table)


def main(table: str) -> None:
    """Append five rows; then restart Spark in the block and append eight, and repeat that as a retry."""
    spark = session()
    append(spark, table, 5)
    try:
        with SafeWriter(spark, table) as block:
            spark.stop()
            append(session(), block.table, 8)
            block.success()
    except Exception as error:  # noqa: BLE001 - the test looks at what is said of it
        print(f"failed: {type(error).__name__}: {error}", flush=True)  # noqa: T201
    os.environ["SOAL_RUN_ID"] = uuid.uuid4().hex
    spark = session()
    with SafeWriter(spark, table) as block:
        print(f"the retry finds it committed: {block.already_committed}", flush=True)  # noqa: T201
        append(spark, block.table, 8)
        block.success()
    spark.stop()
    print("ended", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1])
