"""The neighbours in a random history: other processes that write the table without SafeWriter, by Spark and deltalake.

Spark is one JVM here, whose gate would take a neighbour's statement for one of a block. So neighbours write by
`s3n://`, which uses Delta's own log store. Its unconditional writes lose nothing, since statements never overlap.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tests.property import independent
from tests.property.operations import MAINTENANCE, ROWS, Operation, draw
from tests.property.writers import new_session

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from tests.property.judge import Log

__all__ = ["Deltalake", "Neighbours"]

_PATIENCE_S: Final = 120
_OTHERWISE: Final = {
    "fs.s3n.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}


class Deltalake:
    """The library in a process of its own."""

    def __init__(self, endpoint: str, pool: ProcessPoolExecutor) -> None:
        self._pool = pool
        self._options = {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
        }

    @classmethod
    @contextmanager
    def started(cls, endpoint: str) -> Iterator[Deltalake]:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            yield cls(endpoint, pool)

    def ids(self, table: str) -> list[int]:
        return self._pool.submit(independent.ids, table, self._options).result(_PATIENCE_S)

    def run(self, operation: Operation, table: str) -> None:
        self._pool.submit(independent.run, operation, table, self._options).result(_PATIENCE_S)


class Neighbours:
    """Statements without SafeWriter. `done` holds each by its version; `vacuumed` is the version at the last VACUUM,
    before which files may be deleted.
    """

    def __init__(self, random: random.Random, spark: SparkSession, deltalake: Deltalake, log: Log) -> None:
        self._random, self._deltalake, self._log = random, deltalake, log
        self._spark = new_session(spark)
        for key, value in _OTHERWISE.items():
            self._spark.conf.set(key, value)
        self._uri = log.lake.table.replace("s3a://", "s3://")
        self.done: dict[int, Operation] = {}
        self.vacuumed = 0

    def draw(self, number: int, rows_at: list[Counter[int]], *, is_idle: bool) -> tuple[str, Operation]:
        """Draw an engine and a statement; `rows_at` are the rows of each version.

        VACUUM without retention and RESTORE only while no write is open; for the reason see docs/guides/operating.md.
        """
        engine = self._random.choice(["spark", "deltalake"])
        earlier = range(self.vacuumed, len(rows_at) - 1)
        kinds = (
            *(*ROWS, "optimize", "optimize", "property"),
            *(("vacuum",) * 4 if is_idle else ()),
            *(("restore",) * 4 if is_idle and earlier else ()),
        )
        operation = draw(self._random, number, kinds, vectors=engine == "spark")
        if operation.kind == "restore":
            version = self._random.choice(earlier)
            operation = Operation("restore", version=version, rows=rows_at[version])
        return engine, operation

    def rows(self) -> Counter[int]:
        """Read the table with deltalake."""
        return Counter(self._deltalake.ids(self._uri))

    def run(self, engine: str, operation: Operation, before: Counter[int]) -> None:
        """Carry out the statement, and record the version that it has made."""
        version = len(self._log.commits())
        if engine == "spark":
            operation.run(self._spark, self._log.lake.table.replace("s3a://", "s3n://"))
        else:
            self._deltalake.run(operation, self._uri)
        made = len(self._log.commits()) - version
        if operation.kind == "vacuum":
            self.vacuumed = version - 1  # at most it records itself in the log
        elif made:
            self.done[version] = operation
        assert operation.kind in MAINTENANCE or made == 1 or operation.effect(before) == before
