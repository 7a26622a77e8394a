"""The writers of a random history: each a process with a session of its own, played by a thread of its own."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from safewriter import SafeWriter, writer
from tests.support.lake import LAKE

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from tests.property.operations import Operation
    from tests.support.lake import Lake

__all__ = ["Write", "Writer", "leave_behind", "new_session"]

_QUICK: Final = {
    # A table here has some tens of rows: compiling or distributing a plan costs more than running it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}


def new_session(spark: SparkSession) -> SparkSession:
    """Return a session of the same JVM that is quick on small tables."""
    session = spark.newSession()
    for key, value in _QUICK.items():
        session.conf.set(key, value)
    return session


@dataclass
class Writer:
    """One process with a session: here, a thread of its own. `write`: its open block's write; `changes`: whether it
    found rows to change.
    """

    name: str
    spark: SparkSession
    thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    block: SafeWriter | None = None
    write: Write | None = None
    has_written: bool = False
    changes: bool = False

    def do(self, act: Callable[[], Any]) -> Any:
        return self.thread.submit(act).result(120)

    def vanish(self) -> None:
        """End like a killed process: the block sends nothing more, and renews no lease."""
        self.do(self._vanish)

    def _vanish(self) -> None:
        block = self.block
        assert block is not None
        if block._heartbeat is not None:  # a write that has landed already needs no lease
            block._heartbeat.stop()
        block._block.session.restore()
        writer._registry.close(self.spark, block._block.write)  # a retry is another process


@dataclass(frozen=True)
class Write:
    """One run's write: a retry repeats it under the same step."""

    step: str
    operation: Operation
    commit_point: Any


def leave_behind(lake: Lake, block: SafeWriter) -> set[str]:
    """Put files as tasks do, a data file and a deletion vector, and begin an upload; return all keys."""
    assert block.checkpoint is not None
    prefix = block.checkpoint.attempt.prefix
    file, vector, upload = (
        f"{prefix}part-99.parquet",
        f"deletion_vector_{uuid.uuid4()}.bin",
        f"{prefix}part-98.parquet",
    )
    for key in (file, vector):
        lake.store.put(key, b"of a task")
    lake.client.create_multipart_upload(Bucket=LAKE, Key=f"{lake.name}/{upload}")
    return {file, vector, upload}
