"""Appends to one table, one batch for each line on stdin: `python appender.py guarded|default|iceberg NAME [SETTINGS]`.

`default` uses the log store that Delta itself has for S3, and no guard: what is shown beside it. SETTINGS are those of
an Iceberg catalog, as JSON.
"""

from __future__ import annotations

import json
import os
import sys

from safewriter import SafeWriter
from scripts.emulator.spark import LOCAL_JARS, build_session

_DEFAULT = "io.delta.storage.S3SingleDriverLogStore"


def main(mode: str, name: str, settings: str = "{}") -> None:
    """Say `ready`, then for each line `TABLE` append one row and say `done N`."""
    stores = {f"spark.delta.logStore.{scheme}.impl": _DEFAULT for scheme in ("s3", "s3a")}
    wanted = json.loads(settings) | (stores if mode == "default" else {})
    spark = build_session(os.environ["AWS_ENDPOINT_URL_S3"], "local[1]", wanted, more_jars=LOCAL_JARS)
    spark.range(1).count()
    print("ready", flush=True)  # noqa: T201 - how it talks to the test
    for number, line in enumerate(sys.stdin):
        rows, table = spark.range(0, 1, 1, 1), line.strip()
        if mode == "default":
            rows.write.format("delta").mode("append").save(table)
        elif mode == "iceberg":
            with SafeWriter(spark, table, format="iceberg", step=f"{name}-{number}") as block:
                rows.writeTo(block.table).append()
                block.success()
        else:
            with SafeWriter(spark, table, step=f"{name}-{number}") as block:
                rows.write.format("delta").mode("append").save(block.table)
                block.success()
        print(f"done {number}", flush=True)  # noqa: T201 - how it talks to the test


if __name__ == "__main__":
    main(*sys.argv[1:])
