"""One warm session of a function with a given memory: `python -m tests.lab.bench.scale_session MEMORY_MB FOLDER`.

It answers `{"prepare": "delta", "tables": […]}` and `{"append": "delta", "table": "…", "rows": 9, "guarded": true}`. It
survives the death of its JVM, and reports how the JVM ended.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import uuid
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from handler.sandbox.sandbox import Sandbox
from handler.settings import read_settings
from handler.spark.command import compose_machine
from handler.spark.machine import this_machine
from safewriter import SafeWriter
from tests.lab.bench.scale_rows import frame_of
from tests.lab.processes import Peaks, Usage, answer, asked
from tests.support.spark_session import LOCAL_JARS, build_session

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["DONE", "HEAP_FULL", "KILLED", "outcome_of", "own_options"]

DONE: Final = "done"
KILLED: Final = "killed"
"""By the kernel, for lack of memory."""
HEAP_FULL: Final = "heap full"
_ENDINGS: Final = {-9: KILLED, 137: KILLED, 3: HEAP_FULL}  # 3: -XX:+ExitOnOutOfMemoryError
_DEATH_TIMEOUT_S: Final = 20.0
"""How long the JVM may take to exit after its connection breaks."""
_TIMEOUT_MS: Final = 900_000
"""The function's timeout, from which the handler derives the compiler's settings."""


def own_options(argv: Iterable[str]) -> list[str]:
    """Return the JVM options of a start command, without the heap's size, which Spark refuses."""
    options: list[str] = []
    for word in list(argv)[1:]:
        if word == "-cp":
            return options
        if not word.startswith("-Xmx"):
            options.append(word)
    raise ValueError("these words start no JVM: they have no class path")


def outcome_of(exit_code: int | None, error: Exception) -> str:
    """Return how an append failed. `exit_code`: the JVM's; None: still running."""
    if exit_code is None:
        return f"failed: {type(error).__name__}"
    return _ENDINGS.get(exit_code, f"Java ended with exit code {exit_code}")


def main(memory_mb: str, folder: str) -> None:
    """Start the session, and append on request."""
    spark, heap_mb = _session(int(memory_mb), Path(folder))
    answer(heap_mb=heap_mb)
    usage = Usage(os.getpid())
    for question in asked():
        if "prepare" in question:
            _prepare(spark, question["prepare"], question["tables"])
            answer()
        else:
            answer(**_append(spark, usage, question))


def _session(memory_mb: int, folder: Path) -> tuple[SparkSession, int]:
    """Return a session with the handler's settings for a function of this size, and its heap in MB."""
    sandbox = Sandbox(folder / f"sandbox-{uuid.uuid4().hex}")
    for path in (sandbox.tmp, sandbox.home, sandbox.work):
        path.mkdir(parents=True)
    machine = this_machine(memory_mb)
    command = compose_machine(sandbox, read_settings(os.environ), machine, _TIMEOUT_MS, os.environ)
    settings = {
        **json.loads(os.environ["BENCH_CATALOG"]),
        "spark.driver.memory": f"{machine.heap_mb}m",
        "spark.driver.extraJavaOptions": " ".join(own_options(command.argv)),
        "spark.sql.shuffle.partitions": str(2 * machine.cores),
        "spark.hadoop.hadoop.tmp.dir": str(sandbox.tmp),
        "spark.local.dir": str(sandbox.tmp),
    }
    endpoint = os.environ["AWS_ENDPOINT_URL_S3"]
    return build_session(endpoint, f"local[{machine.cores}]", settings, more_jars=LOCAL_JARS), machine.heap_mb


def _prepare(spark: SparkSession, lake_format: str, tables: list[str]) -> None:
    """Create tables and append a row, so that no measured append includes a creation or a table's first read."""
    for table in tables:
        empty = frame_of(spark, 0)
        if lake_format == "iceberg":
            empty.writeTo(table).using("iceberg").create()
        else:
            empty.write.format("delta").save(table)
        _write(frame_of(spark, 1), lake_format, table)


def _append(spark: SparkSession, usage: Usage, question: dict[str, Any]) -> dict[str, Any]:
    """Append; return the seconds, those of the block outside of its statement, and the peak of the JVM's memory."""
    lake_format, table = question["append"], question["table"]
    frame = frame_of(spark, question["rows"])
    java = cast("subprocess.Popen[bytes]", spark.sparkContext._gateway.proc)  # type: ignore[union-attr]
    step = uuid.uuid4().hex  # each block is a write of its own
    guard = SafeWriter(spark, table, format=lake_format, step=step) if question["guarded"] else nullcontext()
    with Peaks(usage) as peaks:
        began = time.monotonic()
        try:
            with guard as block:
                _write(frame, lake_format, table if block is None else block.table)
                if block is not None:
                    block.success()
        except Exception as error:  # noqa: BLE001 - an append that does not fit is a result
            return {"outcome": outcome_of(_exit_code(java), error)}
        ended = time.monotonic()
        _wait_for_hygiene()
    return {"outcome": DONE, "seconds": ended - began, "jvm_mb": peaks.mb["jvm"]}


def _exit_code(java: subprocess.Popen[bytes]) -> int | None:
    try:
        return java.wait(_DEATH_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return None


def _write(frame: DataFrame, lake_format: str, table: str) -> None:
    if lake_format == "iceberg":
        frame.writeTo(table).append()
    else:
        frame.write.format("delta").mode("append").save(table)


def _wait_for_hygiene() -> None:
    """Wait for the block's threads: their work must not overlap with the next append."""
    for thread in threading.enumerate():
        if thread.name == "safewriter-tidy":
            thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
