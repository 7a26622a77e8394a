"""SIGKILL of a job at each of its mutating S3 requests, in a Java machine that has run another job before.

The real handler under the real emulator; deltalake tells what is in the table. The killed job's writes are settled by
the handler before it answers, and its retry, in a new machine, makes them exactly once.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import psutil
import pytest

from handler.outcome.result import Result
from scripts.emulator.rie import LambdaEmulator
from scripts.emulator.rules import Kill, Match, Rule
from scripts.emulator.s3 import EmbeddedS3
from tests.support.lake import CHECKPOINTS, LAKE, Lake
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.emulator, pytest.mark.slow, pytest.mark.timeout(1800)]

SCRIPTS = "scripts"
ROWS = 7
JOB = f"""
import sys
from pyspark.sql import SparkSession
from safewriter import SafeWriter

spark = SparkSession.builder.getOrCreate()
with SafeWriter(spark, sys.argv[1]) as sw:
    spark.range({ROWS}).write.format("delta").mode("append").save(sw.table)
    sw.success()
"""
OF_THE_JOB = Match(is_mutating=True, key=r"^(?!leases/|runs/)")
"""The handler's own records are no requests of the job."""


@dataclass
class Function:
    """The function, and one table of its own."""

    emulator: LambdaEmulator
    s3: EmbeddedS3

    def run(self, lake: Lake, token: str) -> Result:
        event = {"script": f"s3://{SCRIPTS}/job.py", "clientToken": token, "entryPointArguments": [lake.table]}
        answer = self.emulator.invoke(event)
        document = answer.payload if answer.error is None else json.loads(answer.error.message)
        return Result.model_validate(document)

    def kill(self) -> None:
        """Kill the Java machine and all below it."""
        machine = next(one for one in self.emulator.processes() if one.name() == "java")
        for process in (*machine.children(recursive=True), machine):
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue


@pytest.fixture(scope="module")
def function() -> Iterator[Function]:
    with EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS, LAKE]) as s3:
        s3.observer().put_object(Bucket=SCRIPTS, Key="job.py", Body=JOB.encode())
        variables = {**s3.environment(), "SOAL_JIT": "c1", "SW_CHECKPOINT_BUCKET": CHECKPOINTS}
        with LambdaEmulator(variables, timeout_s=BUSY_S, memory_mb=1769) as emulator:
            yield Function(emulator, s3)


def killed(function: Function, phase: Literal["before", "after"], nth: int, match: Match = OF_THE_JOB) -> bool:
    """Kill the second job of a machine at a request, look, and retry. Return whether there was such a request."""
    lake = Lake(function.s3.observer(), function.s3.endpoint, uuid.uuid4().hex)
    assert function.run(lake, f"{lake.name}-first").state == "SUCCESS"
    assert lake.rows() == ROWS
    rule = function.s3.wire.add(Rule(match, Kill(phase, function.kill), nth=nth))
    result = function.run(lake, f"{lake.name}-second")
    function.s3.wire.clear_rules()
    assert result.warm_start
    if rule.hits == 0:
        assert result.state == "SUCCESS"
        return False
    assert result.state in ("FAILED", "SUCCESS"), result.state_details
    committed = any(write.status == "committed" for write in result.writes)
    assert lake.rows() == ROWS * (2 if committed else 1), result.state_details
    retry = function.run(lake, f"{lake.name}-second")
    assert retry.state == "SUCCESS", retry.state_details
    assert not retry.warm_start
    assert lake.rows() == 2 * ROWS
    lake.check()
    assert lake.orphans() == set()
    return True


@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_kill_at_the_commit_in_a_warm_machine(function: Function, phase: Literal["before", "after"]) -> None:
    """The verdict is the table's, and the retry makes the rest."""
    assert killed(function, phase, 1, Match(operations={"PutObject"}, key_class="delta_log/commit"))


@pytest.mark.matrix
@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_kill_at_every_boundary_in_a_warm_machine(function: Function, phase: Literal["before", "after"]) -> None:
    """The enumeration ends by itself."""
    nth = 1
    while killed(function, phase, nth):
        nth += 1
    assert nth > 6  # marker, document, data files, commit, verdict, and what is removed
