"""One guarded build of a snapshot in a process of its own, to be killed: `python snapshot_victim.py`.

Like `victim.py`: warm, `ready`, one line `PREFIX RUN_KEY FIRST LAST`, and at the end its report.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from safewriter.snapshots import BuildResult, WriteConfig, binary_col, write_sharded
from tests.support.spark_session import build_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def build(spark: SparkSession, prefix: str, first: int, last: int) -> BuildResult:
    """Build a snapshot of the numbers from `first` to before `last`, in three shards."""
    frame = spark.range(first, last, 1, 2).selectExpr("id", "concat('value ', id) AS v")
    return write_sharded(frame, WriteConfig(num_dbs=3, s3_prefix=prefix), key_col="id", value_spec=binary_col("v"))


def main() -> None:
    """Warm up, wait for the order, build."""
    spark = build_session(os.environ["AWS_ENDPOINT_URL_S3"], "local[1]", {"spark.ui.enabled": "false"})
    spark.range(1).count()
    print("ready", flush=True)  # noqa: T201 - how it talks to the test
    prefix, run_key, first, last = sys.stdin.readline().split()
    os.environ["SOAL_RUN_KEY"] = run_key
    build(spark, prefix, int(first), int(last))
    print("acknowledged", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
