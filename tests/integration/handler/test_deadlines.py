"""Guarded jobs that meet their deadline at different points: each answers before it, with the protocol's verdict.

The time to reach that point depends on the machine. So each job has a file by which it advances its own clock and the
handler's to the start of the lead time, once it is there. The jobs wait for the rest of the time; they run side by
side, each in a function of its own.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from handler.outcome.result import Result, exit_status
from scripts.emulator.rie import LambdaEmulator
from scripts.provision.place import ROOT
from soal.testing.s3 import EmbeddedS3
from tests.support.lake import CHECKPOINTS, LAKE, Lake

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.emulator, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

TIMEOUT_S = 280
LEAD_MS = 40_000
SCRIPTS = "soal-scripts"

BEGIN = """
import os, pathlib, signal, sys, threading, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.path.append(sys.argv[4])
from tests.support.deadlines import put_clock_forward, tasks_run
from tests.support.waiting import until
file = pathlib.Path(sys.argv[2])
put_clock_forward(file)
def let_deadline_come():
    ahead_ms = int(os.environ["SOAL_DEADLINE_EPOCH_MS"]) - int(sys.argv[3]) - time.time_ns() // 1_000_000
    file.with_suffix(".new").write_text(str(ahead_ms))
    file.with_suffix(".new").rename(file)
def let_deadline_come_when_tasks_run():
    until(lambda: tasks_run(spark, 4))
    let_deadline_come()
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
from safewriter import SafeWriter
table = sys.argv[1]
spark.range(3).write.format("delta").save(table)
"""
JOBS = {
    "computes_in_the_jvm": BEGIN
    + """
with SafeWriter(spark, table) as sw:
    threading.Thread(target=let_deadline_come_when_tasks_run, daemon=True).start()
    spark.range(0, 10**15, 1, 4).where("id < 0").write.format("delta").mode("append").save(sw.table)
    sw.success()
""",
    "sleeps_in_a_python_worker_and_sleeps_on": BEGIN
    + """
from pyspark.sql.functions import udf
def slow(number):
    time.sleep(600)
    return number
with SafeWriter(spark, table) as sw:
    threading.Thread(target=let_deadline_come_when_tasks_run, daemon=True).start()
    frame = spark.range(0, 4, 1, 4).select(udf(slow, "long")("id").alias("id"))
    try:
        frame.write.format("delta").mode("append").save(sw.table)
    except Exception:
        time.sleep(600)
""",
    "sleeps_before_the_write": BEGIN
    + """
with SafeWriter(spark, table) as sw:
    let_deadline_come()
    time.sleep(600)
""",
    "stops_its_own_jvm": BEGIN
    + """
with SafeWriter(spark, table) as sw:
    spark.range(4).write.format("delta").mode("append").save(sw.table)
    above = pathlib.Path(f"/proc/{os.getppid()}/stat").read_text()
    jvm = int(above.rpartition(")")[2].split()[1])
    assert pathlib.Path(f"/proc/{jvm}/comm").read_text().strip() == "java"
    os.kill(jvm, signal.SIGSTOP)
    let_deadline_come()
    time.sleep(600)
""",
    "sleeps_before_success": BEGIN
    + """
with SafeWriter(spark, table) as sw:
    spark.range(4).write.format("delta").mode("append").save(sw.table)
    let_deadline_come()
    time.sleep(600)
""",
    "sleeps_before_success_that_decides": BEGIN
    + """
with SafeWriter(spark, table, commit_point="success") as sw:
    spark.range(4).write.format("delta").mode("append").save(sw.table)
    let_deadline_come()
    time.sleep(600)
""",
}
EXPECTED = {
    "computes_in_the_jvm": ("TIMED_OUT", "rolled_back", 3),
    "sleeps_in_a_python_worker_and_sleeps_on": ("TIMED_OUT", "rolled_back", 3),
    "sleeps_before_the_write": ("TIMED_OUT", "rolled_back", 3),
    "stops_its_own_jvm": ("INCOMPLETE", "committed", 7),
    "sleeps_before_success": ("INCOMPLETE", "committed", 7),
    "sleeps_before_success_that_decides": ("TIMED_OUT", "rolled_back", 3),
}
SHORT = ("sleeps_in_a_python_worker_and_sleeps_on", "stops_its_own_jvm", "sleeps_before_success")
"""One of each end: rolled back, committed without an answer, committed. The others run in the matrix;
tests/integration/safewriter/test_deadline.py has similar ones for the guard alone.
"""
KILLED = {"stops_its_own_jvm", "sleeps_in_a_python_worker_and_sleeps_on"}
"""The process that could report pending requests has been killed, so a marker may stay for the sweeper."""


@pytest.fixture(scope="module")
def s3() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS, LAKE], unlistable=[CHECKPOINTS]) as server:
        for name, text in JOBS.items():
            server.observer().put_object(Bucket=SCRIPTS, Key=f"{name}.py", Body=text.encode())
        yield server


def run(s3: EmbeddedS3, job: str, file: Path) -> Result:
    environment = {
        **s3.environment(),
        "SOAL_JIT": "c1",
        "SW_CHECKPOINT_BUCKET": CHECKPOINTS,
        "SW_WARN_BEFORE_MS": str(LEAD_MS),
    }
    environment["TEST_CLOCK_FILE"] = str(file)
    event = {
        "entryPoint": f"s3://{SCRIPTS}/{job}.py",
        "entryPointArguments": [f"s3a://{LAKE}/{job}", str(file), str(LEAD_MS), str(ROOT)],
    }
    handler = "tests.integration.handler.moved_clock.lambda_handler"
    with LambdaEmulator(environment, timeout_s=TIMEOUT_S, memory_mb=1536, handler=handler) as emulator:
        answer = emulator.invoke(event)
        assert not answer.timed_out, emulator.tail()
        assert answer.error is not None, answer.payload
    return Result.model_validate(json.loads(answer.error.message))


@pytest.fixture(scope="module")
def results(
    request: pytest.FixtureRequest, s3: EmbeddedS3, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Result]:
    """The results of the jobs whose tests were selected."""
    folder = tmp_path_factory.mktemp("clocks")
    jobs = [job for job in JOBS if any(item.name.endswith(f"[{job}]") for item in request.session.items)]
    with ThreadPoolExecutor(len(jobs)) as pool:
        return dict(zip(jobs, pool.map(lambda job: run(s3, job, folder / job), jobs), strict=True))


@pytest.mark.parametrize("job", [pytest.param(job, marks=() if job in SHORT else pytest.mark.matrix) for job in JOBS])
def test_a_job_that_meets_its_deadline_is_settled_and_says_so(
    s3: EmbeddedS3, results: dict[str, Result], job: str
) -> None:
    """Exit code 124, the verdict that the table shows, no file, and no marker if the job's process could answer; a
    committed run can be continued.
    """
    result = results[job]
    state, verdict, rows = EXPECTED[job]
    assert (result.state, exit_status(result)) == (state, 124), result.state_details
    assert result.timings.remaining_ms > 0
    (write,) = result.writes
    assert write.status == verdict
    lake = Lake(s3.observer(), s3.endpoint, job)
    lake.check()
    assert lake.rows() == rows
    assert lake.orphans() == set()
    assert job in KILLED or lake.markers(lake.document()) == ()
