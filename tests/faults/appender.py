"""Appends to one table, one batch for each line on stdin: `python appender.py guarded|default NAME`.

`default` uses the log store that Delta itself has for S3, and no guard: what is shown beside it.
"""

from __future__ import annotations

import os
import sys

from safewriter import SafeWriter
from scripts.emulator.spark import build_session

_DEFAULT = "io.delta.storage.S3SingleDriverLogStore"


def main(mode: str, name: str) -> None:
    """Say `ready`, then for each line `TABLE` append one row and say `done N`."""
    stores = {f"spark.delta.logStore.{scheme}.impl": _DEFAULT for scheme in ("s3", "s3a")}
    spark = build_session(os.environ["AWS_ENDPOINT_URL_S3"], "local[1]", stores if mode == "default" else {})
    spark.range(1).count()
    print("ready", flush=True)  # noqa: T201 - how it talks to the test
    for number, line in enumerate(sys.stdin):
        frame = spark.range(0, 1, 1, 1).write.format("delta").mode("append")
        if mode == "default":
            frame.save(line.strip())
        else:
            with SafeWriter(spark, line.strip(), step=f"{name}-{number}") as block:
                frame.save(block.table)
                block.success()
        print(f"done {number}", flush=True)  # noqa: T201 - how it talks to the test


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
