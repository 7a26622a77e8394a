"""Appends to tables: `python -m tests.lab.bench.appender NAME FORMAT [SETTINGS]`.

Each line `{"way": "guarded", "table": "…"}` on stdin appends one row; the other way is `plain`. FORMAT is delta or
iceberg, SETTINGS are additional session settings as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

from safewriter import SafeWriter
from tests.lab.processes import answer, asked
from tests.support.spark_session import LOCAL_JARS, build_session, full_jars

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__: list[str] = []


def main(name: str, lake_format: str, settings: str = "{}") -> None:
    """Answer once when ready, then once per row, with an error as `failed`."""
    more_jars = (*LOCAL_JARS, *full_jars())
    spark = build_session(os.environ["AWS_ENDPOINT_URL_S3"], "local[1]", json.loads(settings), more_jars=more_jars)
    spark.range(1).count()
    answer()
    for number, question in enumerate(asked()):
        rows = spark.range(0, 1, 1, 1)
        way, table = question["way"], question["table"]
        try:
            if way == "plain":
                _append(rows, lake_format, table)
            else:
                with SafeWriter(spark, table, format=lake_format, step=f"{name}-{number}") as block:
                    _append(rows, lake_format, block.table)
                    block.success()
        except Exception as error:  # noqa: BLE001 - the caller counts them
            answer(failed=f"{type(error).__name__}: {' '.join(str(error).split())[:500]}")
        else:
            answer()


def _append(rows: DataFrame, lake_format: str, table: str) -> None:
    if lake_format == "iceberg":
        rows.writeTo(table).append()
    else:
        rows.write.format("delta").mode("append").save(table)


if __name__ == "__main__":
    main(*sys.argv[1:])
