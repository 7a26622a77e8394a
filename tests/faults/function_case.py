"""The real handler under the real emulator, and tables that deltalake and pyiceberg read: for faults in its jobs."""

from __future__ import annotations

import contextlib
import json
import signal
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import psutil
import pytest

from handler.outcome.result import Result
from scripts.emulator.rest_catalog import RestCatalog
from scripts.emulator.rie import LambdaEmulator
from soal.testing.s3.embedded import EmbeddedS3
from soal.testing.s3.rules import Match
from tests.support.iceberg_writer import IDS, open_catalog
from tests.support.lake import CHECKPOINTS, LAKE, Lake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from soal.remote.answer import Answer

__all__ = [
    "COMMIT",
    "OF_THE_ATTEMPT",
    "OF_THE_JOB",
    "ROWS",
    "TABLES",
    "Function",
    "Table",
    "Who",
    "processes_of",
    "served",
]

Who = Literal["job", "java", "driver", "handler", "sandbox"]
"""Java and its descendants; Java; the Python process of the script; the handler; handler and job."""
SCRIPTS = "scripts"
ROWS = 7
JOB = f"""
import sys
from pyspark.sql import SparkSession
from safewriter import SafeWriter

spark = SparkSession.builder.getOrCreate()
with SafeWriter(spark, sys.argv[1], format=sys.argv[2]) as sw:
    rows = spark.range({ROWS})
    if sys.argv[2] == "delta":
        rows.write.format("delta").mode("append").save(sw.table)
    else:
        rows.writeTo(sw.table).append()
    sw.success()
"""
CATALOG = "lake"
OF_THE_JOB = Match(is_mutating=True, key=r"^(?!leases/|runs/|results/)")
"""Without the handler's own records."""
OF_THE_ATTEMPT = Match(is_mutating=True, key=r"^(?!leases/|runs/)")
"""Includes the result that the handler stores before it answers."""


class Table(Protocol):
    """A test's own table, seen by a reader other than Spark."""

    format: str
    argument: str
    token: str

    def rows(self) -> int: ...

    def check(self) -> None: ...


class DeltaTable:
    """Read by deltalake. No unreferenced file may be left."""

    format = "delta"

    def __init__(self, function: Function) -> None:
        self.token = uuid.uuid4().hex
        self._lake = Lake(function.s3.observer(), function.s3.endpoint, self.token)
        self.argument = self._lake.table
        self.rows = self._lake.rows

    def check(self) -> None:
        self._lake.check()
        assert self._lake.orphans() == set()


class IcebergTable:
    """Read by pyiceberg. Its history holds only the published snapshots."""

    format = "iceberg"

    def __init__(self, function: Function) -> None:
        self.token = uuid.uuid4().hex
        self.argument = f"{CATALOG}.db.t{self.token}"
        self._name = f"db.t{self.token}"
        self._catalog = open_catalog(CATALOG, function.catalog)
        self._catalog.create_table(self._name, IDS)

    def rows(self) -> int:
        return int(self._catalog.load_table(self._name).scan().count())

    def check(self) -> None:
        # The first block on a table without a snapshot creates an empty one.
        assert len(self._catalog.load_table(self._name).history()) == 1 + self.rows() // ROWS


@dataclass
class Function:
    """The function, its S3 and its catalog."""

    emulator: LambdaEmulator
    s3: EmbeddedS3
    catalog: dict[str, str]

    def run(self, table: Table, name: str) -> Result:
        """Invoke the job under a token; return the result."""
        return self.result(self.invoke(table, name))

    @staticmethod
    def is_told(answer: Answer) -> bool:
        """Return whether the handler lived to answer."""
        return not answer.timed_out and (answer.error is None or answer.error.type == "JobFailed")

    @staticmethod
    def result(answer: Answer) -> Result:
        """Return the answer's document."""
        return Result.model_validate(answer.payload if answer.error is None else json.loads(answer.error.message))

    def invoke(self, table: Table, name: str) -> Answer:
        """Invoke the job under a token; return Lambda's answer, without a document if the handler was killed."""
        return self.emulator.invoke(
            {
                "script": f"s3://{SCRIPTS}/job.py",
                "clientToken": f"{table.token}-{name}",
                "entryPointArguments": [table.argument, table.format],
            }
        )

    def end(self, signal_: signal.Signals = signal.SIGKILL, who: Who = "job") -> None:
        """Kill some of its processes, or send them another signal."""
        for process in processes_of(self.emulator, who):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal_)


def processes_of(emulator: LambdaEmulator, who: Who) -> list[psutil.Process]:
    """Return the live processes of a part of a function."""
    below = emulator.processes()
    machines = [one for one in below if one.name() == "java"]
    if who == "java":
        return machines
    job = [process for machine in machines for process in (*machine.children(recursive=True), machine)]
    if who == "driver":  # a fork of Java's child
        servers = {server.pid for machine in machines for server in machine.children()}
        return [one for one in job if one.ppid() in servers]
    handlers = [one for one in below if _is_handler(one)]
    return handlers if who == "handler" else [*handlers, *job] if who == "sandbox" else job


def _is_handler(process: psutil.Process) -> bool:
    try:
        return process.cmdline()[1:3] == ["-m", "awslambdaric"]  # the emulator has it in its arguments
    except psutil.NoSuchProcess:
        return False


@contextlib.contextmanager
def served(folder: Path, timeout_s: int, **variables: str) -> Iterator[Function]:
    """Yield a function of 1,769 MB with its S3 and its catalog, which is in `folder`."""
    with (
        EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS, LAKE]) as s3,
        RestCatalog(s3, folder, f"s3a://{LAKE}/warehouse") as catalog,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in s3.environment().items():
            patch.setenv(name, value)
        s3.observer().put_object(Bucket=SCRIPTS, Key="job.py", Body=JOB.encode())
        where = {"type": "rest", "uri": catalog.uri}
        prefix = f"spark.sql.catalog.{CATALOG}"
        conf = {prefix: "org.apache.iceberg.spark.SparkCatalog", **{f"{prefix}.{key}": where[key] for key in where}}
        own = {
            **s3.environment(),
            "SOAL_JIT": "c1",
            "SW_CHECKPOINT_BUCKET": CHECKPOINTS,
            "SOAL_CONF": json.dumps(conf),
            **variables,
        }
        patch.setenv("SOAL_CONF", own["SOAL_CONF"])  # a settler in this process asks no address that a document names
        with LambdaEmulator(own, timeout_s=timeout_s, memory_mb=1769) as emulator:
            yield Function(emulator, s3, where)


TABLES: dict[str, Callable[[Function], Table]] = {"delta": DeltaTable, "iceberg": IcebergTable}
COMMIT = {
    "delta": Match(operations={"PutObject"}, key_class="delta_log/commit"),
    "iceberg": Match(operations={"CatalogChange"}),
}
