"""Kills of the handler, of Java and of the whole sandbox while one durable execution runs its attempts.

The real handler under the real RIE, behind AWS's emulation of the durable service.
"""

from __future__ import annotations

import json
import random
import signal
import uuid
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Literal

import psutil
import pytest

from handler.outcome.result import Result
from scripts.emulator import EmbeddedS3
from scripts.emulator.durable import DurableEmulator
from scripts.emulator.rules import Kill, Match, Rule
from tests.faults.function_case import processes_of
from tests.support.lake import CHECKPOINTS, LAKE, Lake

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.function_case import Who

pytestmark = [pytest.mark.emulator, pytest.mark.slow, pytest.mark.timeout(1200)]

SCRIPTS = "scripts"
ROWS = 5
MOMENTS: tuple[Literal["before", "after"], ...] = ("before", "after")
JOB = f"""
import sys, time
from pyspark.sql import SparkSession
from safewriter import SafeWriter
table, steps, pause_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
spark = SparkSession.builder.getOrCreate()
for step in range(steps):
    with SafeWriter(spark, table, step=str(step)) as sw:
        if sw.already_committed:
            continue
        spark.range(step * 100, step * 100 + {ROWS}).write.format("delta").mode("append").save(sw.table)
        sw.success()
    time.sleep(pause_s)
"""


class Execution:
    """One execution of the job on a table of its own."""

    def __init__(self, s3: EmbeddedS3, service: DurableEmulator) -> None:
        self.lake = Lake(s3.observer(), s3.endpoint, uuid.uuid4().hex)
        self._service = service

    def run(self, steps: int, pause_s: float = 0.0) -> Result:
        event = {
            "entryPoint": f"s3://{SCRIPTS}/job.py",
            "entryPointArguments": [self.lake.table, str(steps), str(pause_s)],
        }
        answer = self._service.client().invoke(FunctionName="function", Payload=json.dumps(event))
        assert "FunctionError" not in answer, answer["Payload"].read()
        return Result.model_validate_json(answer["Payload"].read())

    def end(self, who: Who) -> None:
        for process in processes_of(self._service.function, who):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)

    def check(self, steps: int) -> None:
        """Each step is there once."""
        assert self.lake.rows() == steps * ROWS
        assert self.lake.operations().count("WRITE") == steps
        assert [document.status for document in self.lake.documents()] == ["committed"] * steps
        self.lake.check()
        assert self.lake.orphans() == set()


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS, LAKE], unlistable=[CHECKPOINTS]) as found:
        for name, value in found.environment().items():
            monkeypatch.setenv(name, value)
        found.observer().put_object(Bucket=SCRIPTS, Key="job.py", Body=JOB.encode())
        yield found


def served(s3: EmbeddedS3, timeout_s: int) -> DurableEmulator:
    variables = {"SOAL_JIT": "c1", "SW_CHECKPOINT_BUCKET": CHECKPOINTS, "SW_WARN_BEFORE_MS": "5000"}
    return DurableEmulator({**s3.environment(), **variables}, timeout_s=timeout_s, memory_mb=1769)


def test_a_sandbox_that_is_killed_behind_its_commit_costs_an_attempt_and_no_row(s3: EmbeddedS3) -> None:
    """The service has no result of that attempt; the table has its write, and the next one skips it."""
    with served(s3, 60) as service:
        execution = Execution(s3, service)
        commit = Match(operations={"PutObject"}, key_class="delta_log/commit")
        rule = s3.wire.add(Rule(commit, Kill("after", lambda: execution.end("sandbox"))))
        result = execution.run(2)
    assert rule.hits == 1
    assert [one.error for one in result.attempts] == ["AttemptLost", None]
    assert (result.state, [write.step for write in result.writes]) == ("SUCCESS", ["0", "1"])
    execution.check(2)


@pytest.mark.matrix
@pytest.mark.parametrize("seed", range(3))
def test_a_job_of_five_timeouts_with_three_kills_is_one_execution(s3: EmbeddedS3, seed: int) -> None:
    """Handler, Java and sandbox, each once, at moments by chance."""
    chance = random.Random(seed)  # noqa: S311 - the same kills for everybody
    steps = 24
    kills: list[Who] = ["handler", "java", "sandbox"]
    chance.shuffle(kills)
    with served(s3, 30) as service:
        execution = Execution(s3, service)
        writes = iter(sorted(chance.sample(range(2, steps - 2), len(kills))))
        commit = Match(operations={"PutObject"}, key_class="delta_log/commit")
        rules = [
            s3.wire.add(Rule(commit, Kill(chance.choice(MOMENTS), partial(execution.end, who)), nth=nth))
            for who, nth in zip(kills, writes, strict=True)
        ]
        result = execution.run(steps, 4.0)
    assert [rule.hits for rule in rules] == [1, 1, 1]
    states = [str(one.state) for one in result.attempts]
    assert (result.state, states[-1]) == ("SUCCESS", "SUCCESS")
    assert states.count("INCOMPLETE") >= 3
    assert len(states) >= 6
    execution.check(steps)
