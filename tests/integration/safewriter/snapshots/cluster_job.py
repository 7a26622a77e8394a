"""The builds of test_cluster, run by a driver of its own with two executors: `python cluster_job.py`.

It reads lines `PREFIX`, and builds a snapshot of the same rows at each; with `PREFIX numbered` the keys are numbers in
the rows' order. It answers `built` or `failed`, and `ended`.
"""

from __future__ import annotations

import os
import random
import sys
from typing import TYPE_CHECKING

import pyarrow as pa

from safewriter.snapshots import WriteConfig, binary_col, write_sharded
from scripts.provision.place import ROOT
from soal.testing.session import SHORT_LIVED
from tests.support.spark_session import build_session

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

ROWS = 20_000
# PySpark's native library of Netty does not belong to the Netty that takes the place of PySpark's.
JAVA = f"{SHORT_LIVED} -Dio.netty.transport.noNative=true"
SHARDS = 6


def in_any_order(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a partition in another order each time, like a queue or an unsorted listing."""
    for batch in batches:
        order = random.sample(range(batch.num_rows), batch.num_rows)
        yield batch.take(pa.array(order))


def main() -> None:
    """Warm up, print `ready`, and build."""
    settings = {
        "spark.executor.memory": "700m",
        "spark.executorEnv.PYTHONPATH": str(ROOT),
        "spark.driver.extraJavaOptions": JAVA,
        "spark.executor.extraJavaOptions": JAVA,
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.3",
        "spark.speculation.minTaskRuntime": "1s",
        "spark.task.reaper.enabled": "true",
        "spark.ui.enabled": "false",
    }
    spark = build_session(os.environ["AWS_ENDPOINT_URL_S3"], "local-cluster[2,2,900]", settings)
    spark.range(1).count()
    print("ready", flush=True)  # noqa: T201 - how it talks to the test
    for line in sys.stdin:
        prefix, _, kind = line.strip().partition(" ")
        rows = spark.range(0, ROWS, 1, 4)
        frame = rows.selectExpr("id", "concat('value ', id) AS v")
        if kind == "numbered":
            numbered = rows.mapInArrow(in_any_order, "id long")
            frame = numbered.selectExpr("monotonically_increasing_id() AS id", "concat('value ', id) AS v")
        config = WriteConfig(num_dbs=SHARDS, s3_prefix=prefix)
        try:
            write_sharded(frame, config, key_col="id", value_spec=binary_col("v"))
        except Exception as error:  # noqa: BLE001 - the test judges
            print(f"failed: {error!r}")  # noqa: T201
        else:
            print(f"built {prefix}")  # noqa: T201
        print(f"repeated stages: {repeated(spark)}")  # noqa: T201
        print(f"ended {prefix}", flush=True)  # noqa: T201


def repeated(spark: SparkSession) -> int:
    """Count the stages that Spark has repeated, as far as it remembers them."""
    tracker = spark.sparkContext.statusTracker()
    found = [tracker.getStageInfo(number) for number in range(100)]
    return sum(stage is not None and stage.currentAttemptId > 0 for stage in found)


if __name__ == "__main__":
    main()
