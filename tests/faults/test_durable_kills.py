"""Kills of the handler, of Java and of the whole sandbox during the attempts of one durable execution.

The real handler under the real RIE, behind AWS's emulation of the durable service.
"""

from __future__ import annotations

import csv
import io
import json
import signal
import uuid
from collections import Counter
from contextlib import suppress
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Literal

import psutil
import pytest

from handler.outcome.result import Result
from scripts.accommodations import csv_bytes
from scripts.emulator.durable import DurableEmulator
from soal.testing.s3 import EmbeddedS3
from soal.testing.s3.rules import Kill, Match, Rule
from tests.faults.function_case import processes_of
from tests.support.lake import CHECKPOINTS, LAKE, Lake

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.faults.function_case import Who

pytestmark = [pytest.mark.emulator, pytest.mark.slow, pytest.mark.timeout(1200)]

SCRIPTS = "scripts"
ROWS = 5
COMMIT = Match(operations={"PutObject"}, key_class="delta_log/commit")
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


BACKFILL = """
import sys
from pyspark.sql import SparkSession
from safewriter import days, parts
spark = SparkSession.builder.getOrCreate()
source = spark.read.csv(sys.argv[2], header=True, sep=";", quote='"', escape='"', multiLine=True)
rows = source.selectExpr("CAST(id AS LONG) AS id", "CAST(checkin AS DATE) AS day").cache()
for part in parts(spark, sys.argv[1], days("2025-12-31", "2026-12-31")):
    with part as sw:
        rows.where(rows.day == part.value).coalesce(1).write.format("delta").mode("append").save(sw.table)
        sw.success()
"""


class Execution:
    """One execution of a job on a table of its own."""

    def __init__(self, s3: EmbeddedS3, service: DurableEmulator) -> None:
        self.lake = Lake(s3.observer(), s3.endpoint, uuid.uuid4().hex)
        self._service = service

    def run(self, script: str, *arguments: str) -> Result:
        event = {"entryPoint": f"s3://{SCRIPTS}/{script}.py", "entryPointArguments": [self.lake.table, *arguments]}
        answer = self._service.client().invoke(FunctionName="function", Payload=json.dumps(event))
        assert "FunctionError" not in answer, answer["Payload"].read()
        return Result.model_validate_json(answer["Payload"].read())

    def end(self, who: Who) -> None:
        for process in processes_of(self._service.function, who):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)

    def check(self, steps: int) -> None:
        """Check that each step is in the table once."""
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
        for name, text in (("job", JOB), ("backfill", BACKFILL)):
            found.observer().put_object(Bucket=SCRIPTS, Key=f"{name}.py", Body=text.encode())
        yield found


def planted(s3: EmbeddedS3, execution: Execution, chance: Random, kills: Iterable[tuple[Who, int]]) -> list[Rule]:
    """Kill parts of the function before or after their n-th commit."""
    return [
        s3.wire.add(Rule(COMMIT, Kill(chance.choice(MOMENTS), partial(execution.end, who)), nth=nth))
        for who, nth in kills
    ]


def served(s3: EmbeddedS3, timeout_s: int) -> DurableEmulator:
    variables = {"SOAL_JIT": "c1", "SW_CHECKPOINT_BUCKET": CHECKPOINTS, "SW_WARN_BEFORE_MS": "5000"}
    return DurableEmulator({**s3.environment(), **variables}, timeout_s=timeout_s, memory_mb=1769)


@pytest.mark.matrix
def test_a_sandbox_that_is_killed_behind_its_commit_costs_an_attempt_and_no_row(s3: EmbeddedS3) -> None:
    """The service has no result of that attempt; the table has its write, and the next attempt skips it."""
    with served(s3, 60) as service:
        execution = Execution(s3, service)
        rule = s3.wire.add(Rule(COMMIT, Kill("after", lambda: execution.end("sandbox"))))
        result = execution.run("job", "2", "0")
    assert rule.hits == 1
    assert [one.error for one in result.attempts] == ["AttemptLost", None]
    assert (result.state, [write.step for write in result.writes]) == ("SUCCESS", ["0", "1"])
    execution.check(2)


@pytest.mark.matrix
@pytest.mark.parametrize("seed", range(3))
def test_a_job_of_five_timeouts_with_three_kills_is_one_execution(s3: EmbeddedS3, seed: int) -> None:
    """Handler, Java and sandbox are killed once each, at random moments."""
    chance = Random(seed)  # noqa: S311 - the same kills for everybody
    steps = 24
    kills: list[Who] = ["handler", "java", "sandbox"]
    chance.shuffle(kills)
    with served(s3, 30) as service:
        execution = Execution(s3, service)
        writes = iter(sorted(chance.sample(range(2, steps - 2), len(kills))))
        rules = planted(s3, execution, chance, zip(kills, writes, strict=True))
        result = execution.run("job", str(steps), "4.0")
    assert [rule.hits for rule in rules] == [1, 1, 1]
    states = [str(one.state) for one in result.attempts]
    assert (result.state, states[-1]) == ("SUCCESS", "SUCCESS")
    assert states.count("INCOMPLETE") >= 3
    assert len(states) >= 6
    execution.check(steps)


@pytest.mark.matrix
def test_a_year_is_backfilled_by_day_with_kills_in_between(s3: EmbeddedS3) -> None:
    """The table holds each day once, by the file's own count."""
    body = csv_bytes()
    s3.observer().put_object(Bucket=LAKE, Key="source.csv", Body=body)
    rows = csv.DictReader(io.StringIO(body.decode()), delimiter=";")
    wanted = Counter(row["checkin"] for row in rows)
    with served(s3, 60) as service:
        execution = Execution(s3, service)
        kills: list[tuple[Who, int]] = [("java", 40), ("sandbox", 120), ("handler", 200)]
        rules = planted(s3, execution, Random(1), kills)  # noqa: S311 - the same kills for everybody
        result = execution.run("backfill", f"s3a://{LAKE}/source.csv")
    assert [rule.hits for rule in rules] == [1, 1, 1]
    assert len(result.attempts) >= 4
    found = execution.lake.delta()
    assert found is not None
    days = Counter(str(day) for day in found.to_pyarrow_table(columns=["day"])["day"].to_pylist())
    assert days == wanted
    # The first day has no row, and a commit all the same.
    assert execution.lake.operations().count("WRITE") == len(wanted) + 1
    execution.lake.check()
