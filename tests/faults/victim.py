"""One guarded append in a process of its own, to be killed: `python victim.py TABLE ROWS`.

It makes its session and looks at the table first, says `ready` and waits for a line on stdin, so that the next victim
can warm up while one is being killed. At the end it says what it believes to have done.
"""

from __future__ import annotations

import os
import sys

from safewriter import SafeWriter
from scripts.emulator.spark import build_session


def main(rows: int) -> None:
    """Warm up, wait for the order `TABLE RUN_KEY`, append."""
    spark = build_session(os.environ["AWS_ENDPOINT_URL_S3"], "local[1]", {"spark.ui.enabled": "false"})
    spark.range(1).count()
    print("ready", flush=True)  # noqa: T201 - how it talks to the test
    table, run_key = sys.stdin.readline().split()
    os.environ["SOAL_RUN_KEY"] = run_key
    with SafeWriter(spark, table) as block:
        spark.range(0, rows, 1, 1).write.format("delta").mode("append").save(block.table)
        block.success()
    print("acknowledged", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]))
