"""Appends to one table, one batch for each line on stdin: `python appender.py NAME MODE [SETTINGS]`.

MODE is guarded, default (the log store that Delta itself has for S3, and no guard: what is shown beside it), iceberg or
plain-iceberg (no guard, too). SETTINGS are those of an Iceberg catalog, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

from safewriter import SafeWriter
from scripts.emulator.spark import LOCAL_JARS, aws_jars, build_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DEFAULT = "io.delta.storage.S3SingleDriverLogStore"


def main(name: str, mode: str, settings: str = "{}") -> None:
    """Say `ready`, then for each line `TABLE` append one row and say `done N`."""
    stores = {f"spark.delta.logStore.{scheme}.impl": _DEFAULT for scheme in ("s3", "s3a")}
    wanted = json.loads(settings) | (stores if mode == "default" else {})
    more_jars = (*LOCAL_JARS, *aws_jars())
    spark = build_session(os.environ["AWS_ENDPOINT_URL_S3"], "local[1]", wanted, more_jars=more_jars)
    spark.range(1).count()
    print("ready", flush=True)  # noqa: T201 - how it talks to the test
    for number, line in enumerate(sys.stdin):
        rows, table = spark.range(0, 1, 1, 1), line.strip()
        if mode in ("default", "plain-iceberg"):
            append(rows, mode, table)
        else:
            lake_format = "iceberg" if mode == "iceberg" else "delta"
            with SafeWriter(spark, table, format=lake_format, step=f"{name}-{number}") as block:
                append(rows, mode, block.table)
                block.success()
        print(f"done {number}", flush=True)  # noqa: T201 - how it talks to the test


def append(rows: DataFrame, mode: str, table: str) -> None:
    if mode.endswith("iceberg"):
        rows.writeTo(table).append()
    else:
        rows.write.format("delta").mode("append").save(table)


if __name__ == "__main__":
    main(*sys.argv[1:])
