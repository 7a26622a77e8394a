"""Appends to tables, one row for each line on stdin: `python -m tests.lab.bench.appender NAME FORMAT [SETTINGS]`.

FORMAT is delta or iceberg, SETTINGS are more of the session's, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

from safewriter import SafeWriter
from scripts.emulator.spark import LOCAL_JARS, build_session, full_jars

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__: list[str] = []


def main(name: str, lake_format: str, settings: str = "{}") -> None:
    """Say `ready`; then for each line, `guarded TABLE` or `plain TABLE`, append one row and say `done`, or `failed`."""
    more_jars = (*LOCAL_JARS, *full_jars())
    spark = build_session(os.environ["AWS_ENDPOINT_URL_S3"], "local[1]", json.loads(settings), more_jars=more_jars)
    spark.range(1).count()
    print("ready", flush=True)
    for number, line in enumerate(sys.stdin):
        rows = spark.range(0, 1, 1, 1)
        way, table = line.split()
        try:
            if way == "plain":
                _append(rows, lake_format, table)
            else:
                with SafeWriter(spark, table, format=lake_format, step=f"{name}-{number}") as block:
                    _append(rows, lake_format, block.table)
                    block.success()
        except Exception as error:  # noqa: BLE001 - the caller counts them
            print(f"failed {number} {type(error).__name__}: {' '.join(str(error).split())[:500]}", flush=True)
        else:
            print(f"done {number}", flush=True)


def _append(rows: DataFrame, lake_format: str, table: str) -> None:
    if lake_format == "iceberg":
        rows.writeTo(table).append()
    else:
        rows.write.format("delta").mode("append").save(table)


if __name__ == "__main__":
    main(*sys.argv[1:])
