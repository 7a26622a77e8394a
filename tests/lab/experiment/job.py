"""One write of the experiment, in a process of its own: `python -m tests.lab.experiment.job`.

It reads the CSV file and appends it, and at the end prints a line of JSON: its own times, in milliseconds. Its order is
in a variable (`tests.lab.processes`). The emulated S3 kills it.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from handler.process.tree import die_with_parent
from safewriter import SafeWriter
from tests.lab.processes import ORDER
from tests.support.spark_session import LOCAL_JARS, build_session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Order", "session"]

_STOCK: Final = {"spark.delta.logStore.s3a.impl": "io.delta.storage.S3SingleDriverLogStore"}
"""Delta's default for s3a."""


@dataclass(frozen=True, slots=True)
class Order:
    """A job's order. `settings`: Spark's settings of the Iceberg catalog."""

    source: str
    ddl: str
    table: str
    table_format: str
    guarded: bool
    fails: bool
    settings: dict[str, str]


class _ScriptError(Exception):
    """Raised by a script of the arm `fails` after its statement."""


def main(order: Order) -> None:
    """Append the file."""
    began = time.monotonic()
    spark = session("local[2]", order.settings, guarded=order.guarded)
    frame = spark.read.csv(order.source, schema=order.ddl, header=True, sep=";", quote='"', escape='"', multiLine=True)
    session_ready = time.monotonic()
    guard = (
        SafeWriter(spark, order.table, format=order.table_format, commit_point="success" if order.fails else "write")
        if order.guarded
        else nullcontext()
    )
    written = session_ready
    try:
        with guard as block:
            _append(frame, order.table_format, order.table if block is None else block.table)
            written = time.monotonic()
            if order.fails:
                raise _ScriptError  # noqa: TRY301 - this is what is measured
            if block is not None:
                block.success()
    except _ScriptError:
        pass
    ended = time.monotonic()
    marks = {"session_ms": session_ready - began, "write_ms": written - session_ready, "end_ms": ended - written}
    print(json.dumps({name: round(seconds * 1000, 1) for name, seconds in marks.items()}), flush=True)


def session(master: str, settings: Mapping[str, str], *, guarded: bool) -> SparkSession:
    """Build a session; an unguarded one commits with Delta's default."""
    wanted = {"spark.ui.enabled": "false", **settings, **({} if guarded else _STOCK)}
    return build_session(os.environ["AWS_ENDPOINT_URL_S3"], master, wanted, more_jars=LOCAL_JARS)


def _append(frame: DataFrame, table_format: str, table: str) -> None:
    if table_format == "iceberg":
        frame.writeTo(table).append()
    else:
        frame.write.format("delta").mode("append").save(table)


if __name__ == "__main__":
    die_with_parent()  # Java ends with this process
    main(Order(**json.loads(os.environ[ORDER])))
