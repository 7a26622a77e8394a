"""Kills of a job that has 90 minutes, as on Managed Instances: the real handler under the real emulator.

The job's clock and the handler's show emulated time: the job advances both by 20 minutes after each of its writes, as
if it had computed for so long. S3's clock, by which leases expire, is the real one.
"""

from __future__ import annotations

import json
import signal
import uuid
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Literal

import psutil
import pytest

from handler.outcome.result import Result
from scripts.emulator.rie import EmulatorError, LambdaEmulator
from scripts.provision.place import ROOT
from soal.testing.s3 import EmbeddedS3
from soal.testing.s3.rules import Kill, Match, Rule
from tests.faults.function_case import processes_of
from tests.support.lake import CHECKPOINTS, LAKE, Lake

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.function_case import Who

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.matrix,
    pytest.mark.timeout(2400),
]

SCRIPTS = "scripts"
TIMEOUT_S, STEPS, STEP_S, ROWS = 5400, 5, 1200, 5
COMMIT = Match(operations={"PutObject"}, key_class="delta_log/commit")
JOB = f"""
import os, pathlib, sys, time
sys.path.append(sys.argv[3])
from tests.support.deadlines import put_clock_forward
file, began_ms = pathlib.Path(sys.argv[2]), time.time_ns() // 1_000_000
put_clock_forward(file)
def compute():
    ahead_ms = int(file.read_text()) + {STEP_S * 1000}
    file.with_suffix(".new").write_text(str(ahead_ms))
    file.with_suffix(".new").rename(file)
from pyspark.sql import SparkSession
from safewriter import SafeWriter
spark = SparkSession.builder.getOrCreate()
for step in range({STEPS}):
    with SafeWriter(spark, sys.argv[1], step=str(step)) as sw:
        if sw.already_committed:
            continue
        spark.range(step * 100, step * 100 + {ROWS}).coalesce(1).write.format("delta").mode("append").save(sw.table)
        compute()  # within the block: it stays open for longer than a plain function lives
        sw.success()
"""


def attempt(
    s3: EmbeddedS3, lake: Lake, clock: Path, kill: tuple[Who, int, Literal["before", "after"]] | None
) -> Result | None:
    """Make an attempt of the run in an environment of its own; None if the handler was killed, too."""
    variables = {
        **s3.environment(),
        "SOAL_JIT": "c1",
        "SW_CHECKPOINT_BUCKET": CHECKPOINTS,
        "TEST_CLOCK_FILE": str(clock),
    }
    event = {
        "entryPoint": f"s3://{SCRIPTS}/job.py",
        "entryPointArguments": [lake.table, str(clock), str(ROOT)],
        "clientToken": "long",
    }
    handler = "tests.faults.managed_handler.lambda_handler"
    with LambdaEmulator(variables, timeout_s=TIMEOUT_S, memory_mb=2048, handler=handler) as emulator:

        def end(who: Who) -> None:
            for process in processes_of(emulator, who):
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGKILL)

        if kill is not None:
            who, nth, moment = kill
            s3.wire.add(Rule(COMMIT, Kill(moment, partial(end, who)), nth=nth))
        try:
            answer = emulator.invoke(event)
        except EmulatorError:
            return None
    if answer.payload is None or (answer.error is not None and answer.error.type != "JobFailed"):
        return None
    return Result.model_validate(answer.payload if answer.error is None else json.loads(answer.error.message))


def test_a_job_of_ninety_minutes_outlives_two_kills_and_writes_each_step_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java is killed before a commit and the whole environment behind one; the third attempt has the rest."""
    clock = tmp_path / "clock"
    clock.write_text("0")
    with EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS, LAKE], unlistable=[CHECKPOINTS]) as s3:
        for name, value in s3.environment().items():
            monkeypatch.setenv(name, value)
        s3.observer().put_object(Bucket=SCRIPTS, Key="job.py", Body=JOB.encode())
        lake = Lake(s3.observer(), s3.endpoint, uuid.uuid4().hex)
        first = attempt(s3, lake, clock, ("java", 2, "before"))
        second = attempt(s3, lake, clock, ("sandbox", 2, "after"))
        third = attempt(s3, lake, clock, None)

        assert first is not None
        assert [(write.step, write.status) for write in first.writes] == [("0", "committed"), ("1", "rolled_back")]
        assert first.timings.total_ms > STEP_S * 1000  # by the emulated clock: longer than a plain function lives
        assert first.timings.remaining_ms > 900_000
        assert second is None
        assert third is not None, lake.documents()
        assert (third.state, third.attempt) == ("SUCCESS", 3), third.state_details
        assert third.timings.total_ms > 2 * STEP_S * 1000  # the two steps that were left
        assert int(clock.read_text()) == (STEPS - 1) * STEP_S * 1000  # the sandbox was killed within the other one
        assert lake.rows() == STEPS * ROWS
        assert lake.operations().count("WRITE") == STEPS
        assert [document.status for document in lake.documents()] == ["committed"] * STEPS
        lake.check()
        assert lake.orphans() == set()
