"""One guarded write to an Iceberg table in a process of its own, to be killed: `python iceberg_victim.py SETTINGS`, the
settings of the catalog as JSON.

Like `victim.py`: warm, `ready`, one line `TABLE RUN_KEY STATEMENT`, and at the end its report.
"""

from __future__ import annotations

import json
import os
import sys

from safewriter import SafeWriter
from tests.support.spark_session import LOCAL_JARS, build_session

STATEMENTS = {
    "append": "INSERT INTO {table} SELECT id FROM range(2, 9)",
    "merge": (
        "MERGE INTO {table} t USING (SELECT id FROM range(2, 9)) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET id = t.id + 100 WHEN NOT MATCHED THEN INSERT *"
    ),
    "overwrite": "INSERT OVERWRITE {table} SELECT id FROM range(2, 9)",
}


def main() -> None:
    """Warm up, wait for the order, write."""
    settings = {"spark.ui.enabled": "false", **json.loads(sys.argv[1])}
    spark = build_session(os.environ["AWS_ENDPOINT_URL_S3"], "local[1]", settings, more_jars=LOCAL_JARS)
    spark.range(1).count()
    print("ready", flush=True)  # noqa: T201 - how it talks to the test
    table, run_key, statement = sys.stdin.readline().split()
    os.environ["SOAL_RUN_KEY"] = run_key
    with SafeWriter(spark, table, format="iceberg") as block:
        spark.sql(STATEMENTS[statement].format(table=block.table))
        block.success()
    print("acknowledged", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
