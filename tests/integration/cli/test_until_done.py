"""A job of several timeouts: every step exactly once, with and without kills in between."""

from __future__ import annotations

import random
import threading
import uuid
from typing import TYPE_CHECKING

import psutil
import pytest

from scripts.emulator import EmbeddedS3
from scripts.soal.invocation import Function
from scripts.soal.place import Home
from scripts.soal.until_done import until_done
from tests.support.lake import CHECKPOINTS, LAKE, Lake

if TYPE_CHECKING:
    from scripts.soal.invocation import Report

pytestmark = [pytest.mark.emulator, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1200)]

ROWS = 5
SCRIPTS = "soal-scripts"
JOB = f"""
import sys, time
from pyspark.sql import SparkSession
from safewriter import SafeWriter
spark = SparkSession.builder.getOrCreate()
for step in range(int(sys.argv[2])):
    with SafeWriter(spark, sys.argv[1], step=str(step)) as sw:
        if sw.already_committed:
            continue
        spark.range(step * 100, step * 100 + {ROWS}).write.format("delta").mode("append").save(sw.table)
        sw.success()
    time.sleep(float(sys.argv[3]))
"""


def kill_one_function(after_s: float) -> threading.Timer:
    """Kill the function, whatever it is doing, as a crash of its sandbox would."""

    def kill() -> None:
        for process in psutil.Process().children(recursive=True):
            if process.cmdline()[1:3] == ["-m", "awslambdaric"]:  # not the emulator, which has it in its arguments
                tree = [process, *process.children(recursive=True)]
                for one in tree:
                    one.kill()
                return

    timer = threading.Timer(after_s, kill)
    timer.start()
    return timer


@pytest.mark.parametrize(
    ("timeout_s", "steps", "pause_s", "kills", "attempts_max"),
    [
        pytest.param(20, 3, 6.0, 0, 4, id="two timeouts", marks=pytest.mark.matrix),
        pytest.param(120, 37, 12.0, 2, 6, id="four timeouts and two kills", marks=pytest.mark.matrix),
    ],
)
def test_a_job_that_is_longer_than_the_timeout_ends_with_every_step_exactly_once(
    timeout_s: int, steps: int, pause_s: float, kills: int, attempts_max: int
) -> None:
    """Each attempt skips what is committed and goes on at the first step that is not."""
    chance = random.Random(7)  # noqa: S311 - the same kills every time
    with EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS, LAKE], unlistable=[CHECKPOINTS]) as s3:
        s3.observer().put_object(Bucket=SCRIPTS, Key="job.py", Body=JOB.encode())
        lake = Lake(s3.observer(), s3.endpoint, "steps")
        function = Function(
            {**s3.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS, "SW_WARN_BEFORE_MS": "5000"},
            timeout_s,
            1536,
            Home.of(),
            lambda _: None,
        )
        event = {
            "entryPoint": f"s3://{SCRIPTS}/job.py",
            "entryPointArguments": [lake.table, str(steps), str(pause_s)],
            "clientToken": uuid.uuid4().hex,
        }
        reports: list[Report] = []

        def invoke(given: object) -> Report:
            timer = kill_one_function(chance.uniform(timeout_s / 4, timeout_s - 8)) if len(reports) < kills else None
            reports.append(function.invoke(given))
            if timer is not None:
                timer.cancel()
                timer.join()
            return reports[-1]

        last = until_done(invoke, event, attempts_max=attempts_max, remark=lambda _: None)
        assert last.result is not None, last.problem
        assert last.result.state == "SUCCESS", last.result.state_details
        assert len(reports) > 1
        assert [write.step for write in last.result.writes] == [str(step) for step in range(steps)]
        assert lake.rows() == steps * ROWS
        assert lake.operations().count("WRITE") == steps
        lake.check()
