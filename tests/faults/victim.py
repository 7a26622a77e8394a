"""One guarded write in a process of its own, to be killed: `python victim.py`.

It makes its session and reads the table first, prints `ready` and waits for a line on stdin, so that the next victim
can warm up while one is being killed. At the end it reports what it believes to have done.
"""

from __future__ import annotations

import os
import sys

from safewriter import SafeWriter
from tests.faults.statements import STATEMENTS
from tests.faults.streams import STREAMS
from tests.support.spark_session import build_session


def main() -> None:
    """Warm up, wait for the order `TABLE RUN_KEY STATEMENT COMMIT_POINT`, write."""
    spark = build_session(os.environ["AWS_ENDPOINT_URL_S3"], "local[1]", {"spark.ui.enabled": "false"})
    spark.range(1).count()
    print("ready", flush=True)  # noqa: T201 - how it talks to the test
    table, run_key, statement, commit_point = sys.stdin.readline().split()
    os.environ["SOAL_RUN_KEY"] = run_key
    if statement in STREAMS:
        STREAMS[statement](spark, table)
    else:
        with SafeWriter(spark, table, commit_point="success" if commit_point == "success" else "write") as block:
            STATEMENTS[statement].run(spark, block.table)
            block.success()
    print("acknowledged", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
