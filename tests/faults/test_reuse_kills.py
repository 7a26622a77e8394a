"""Faults at each mutating request of a job, in a Java machine that has run another job before.

The real handler under the real emulator; deltalake and pyiceberg tell what is in the table. The handler settles the
writes of a job that has failed before it answers, and its retry makes them exactly once.
"""

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
from scripts.emulator.iceberg_writer import IDS, open_catalog
from scripts.emulator.network_faults import Late
from scripts.emulator.rest_catalog import RestCatalog
from scripts.emulator.rie import LambdaEmulator
from scripts.emulator.rules import Match, Rule
from scripts.emulator.s3 import EmbeddedS3
from tests.faults.case import fault
from tests.support.lake import CHECKPOINTS, LAKE, Lake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.emulator, pytest.mark.slow, pytest.mark.timeout(1800)]

Phase = Literal["before", "torn", "after", "late", "lost", "frozen"]
FUNCTION_S = 60
"""A job that is frozen runs into it; all others end long before."""
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
OF_THE_JOB = Match(is_mutating=True, key=r"^(?!leases/|runs/)")
"""The handler's own records are no requests of the job."""


class Table(Protocol):
    """A table of a test's own, as a reader sees it that is not Spark."""

    format: str
    argument: str
    token: str

    def rows(self) -> int: ...

    def check(self) -> None: ...


class DeltaTable:
    """Read by deltalake. Nothing that no version names may be left."""

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
    """Read by pyiceberg. Its history holds the published snapshots, and no other."""

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
        # The first block on a table without a snapshot makes an empty one.
        assert len(self._catalog.load_table(self._name).history()) == 1 + self.rows() // ROWS


@dataclass
class Function:
    """The function, its S3 and its catalog."""

    emulator: LambdaEmulator
    s3: EmbeddedS3
    catalog: dict[str, str]

    def run(self, table: Table, name: str) -> Result:
        event = {
            "script": f"s3://{SCRIPTS}/job.py",
            "clientToken": f"{table.token}-{name}",
            "entryPointArguments": [table.argument, table.format],
        }
        answer = self.emulator.invoke(event)
        document = answer.payload if answer.error is None else json.loads(answer.error.message)
        return Result.model_validate(document)

    def end(self, signal_: signal.Signals = signal.SIGKILL) -> None:
        """End the Java machine and all below it, or send it another signal."""
        for machine in [one for one in self.emulator.processes() if one.name() == "java"]:
            for process in (*machine.children(recursive=True), machine):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.send_signal(signal_)


@pytest.fixture(scope="module")
def function(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Function]:
    with (
        EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS, LAKE]) as s3,
        RestCatalog(s3, tmp_path_factory.mktemp("catalog"), f"s3a://{LAKE}/warehouse") as catalog,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in s3.environment().items():
            patch.setenv(name, value)
        s3.observer().put_object(Bucket=SCRIPTS, Key="job.py", Body=JOB.encode())
        where = {"type": "rest", "uri": catalog.uri}
        prefix = f"spark.sql.catalog.{CATALOG}"
        conf = {prefix: "org.apache.iceberg.spark.SparkCatalog", **{f"{prefix}.{key}": where[key] for key in where}}
        variables = {
            **s3.environment(),
            "SOAL_JIT": "c1",
            "SW_CHECKPOINT_BUCKET": CHECKPOINTS,
            "SOAL_CONF": json.dumps(conf),
        }
        with LambdaEmulator(variables, timeout_s=FUNCTION_S, memory_mb=1769) as emulator:
            yield Function(emulator, s3, where)


def hit(function: Function, table: Table, phase: Phase, nth: int, match: Match = OF_THE_JOB) -> bool:
    """Let a request of the second job of a machine fail, look, and retry. Return whether there was such a request."""
    assert function.run(table, "first").state == "SUCCESS"
    assert table.rows() == ROWS
    late = Late(end=function.end)
    action = (
        Late(then="waits", end=lambda: function.end(signal.SIGSTOP))
        if phase == "frozen"
        else fault(phase, function.end, late)
    )
    rule = function.s3.wire.add(Rule(match, action, nth=nth))
    result = function.run(table, "second")
    function.s3.wire.clear_rules()
    assert result.warm_start
    if rule.hits == 0:
        assert result.state == "SUCCESS"
        return False
    # Incomplete: the time of a frozen job has come, and its write is committed.
    assert result.state in ("FAILED", "SUCCESS", "TIMED_OUT", "INCOMPLETE"), result.state_details
    committed = any(write.status == "committed" for write in result.writes)
    assert table.rows() == ROWS * (2 if committed else 1), result.state_details
    for held in (late, action):
        if isinstance(held, Late):
            held.release()  # it lands behind the verdict
    if phase == "frozen":
        function.end(signal.SIGCONT)  # as Lambda thaws a sandbox, before the next event
    assert table.rows() == ROWS * (2 if committed else 1), result.state_details
    retry = function.run(table, "second")
    assert retry.state == "SUCCESS", retry.state_details
    if result.state != "SUCCESS":
        assert not retry.warm_start
    elif phase == "lost":
        assert retry.warm_start
    assert table.rows() == 2 * ROWS
    table.check()
    return True


TABLES: dict[str, Callable[[Function], Table]] = {"delta": DeltaTable, "iceberg": IcebergTable}
COMMIT = {
    "delta": Match(operations={"PutObject"}, key_class="delta_log/commit"),
    "iceberg": Match(operations={"CatalogChange"}),
}


@pytest.mark.parametrize(
    ("lake_format", "phase"),
    [
        ("delta", "before"),
        ("delta", "after"),
        ("iceberg", "after"),
        *(
            pytest.param(lake_format, phase, marks=pytest.mark.matrix)
            for lake_format in ("delta", "iceberg")
            for phase in ("torn", "late", "lost", "frozen")
        ),
        pytest.param("iceberg", "before", marks=pytest.mark.matrix),
    ],
)
def test_a_fault_at_the_commit_in_a_warm_machine(function: Function, lake_format: str, phase: Phase) -> None:
    """The verdict is the table's, and the retry makes the rest."""
    assert hit(function, TABLES[lake_format](function), phase, 1, COMMIT[lake_format])


@pytest.mark.matrix
@pytest.mark.parametrize("phase", ["before", "torn", "after", "late", "lost", "frozen"])
@pytest.mark.parametrize("lake_format", ["delta", "iceberg"])
def test_a_fault_at_every_boundary_in_a_warm_machine(function: Function, lake_format: str, phase: Phase) -> None:
    """The enumeration ends by itself."""
    nth = 1
    while hit(function, TABLES[lake_format](function), phase, nth):
        nth += 1
    assert nth > 6  # marker, document, data files, commit, verdict, and what is removed
