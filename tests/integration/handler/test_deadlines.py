"""Where the deadline finds a guarded job: each answers before the emulator's own kill, with the protocol's verdict.

The jobs wait most of the time, so they run side by side, each in a function of its own.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from handler.response import Result, exit_status
from scripts.emulator import EmbeddedS3
from scripts.emulator.rie import LambdaEmulator
from tests.support.lake import CHECKPOINTS, LAKE, Lake

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.emulator, pytest.mark.spark, pytest.mark.slow]

TIMEOUT_S = 50
SCRIPTS = "soal-scripts"

BEGIN = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
from safewriter import SafeWriter
table = sys.argv[1]
spark.range(3).write.format("delta").save(table)
"""
JOBS = {
    "sleeps_in_the_jvm": BEGIN
    + """
sleeps = "id + 0 * length(reflect('java.lang.Thread', 'sleep', 600000L)) AS id"
with SafeWriter(spark, table) as sw:
    spark.range(4).selectExpr(sleeps).write.format("delta").mode("append").save(sw.table)
    sw.success()
""",
    "sleeps_in_a_python_worker_and_sleeps_on": BEGIN
    + """
from pyspark.sql.functions import udf
def slow(number):
    time.sleep(600)
    return number
with SafeWriter(spark, table) as sw:
    try:
        spark.range(4).select(udf(slow, "long")("id").alias("id")).write.format("delta").mode("append").save(sw.table)
    except Exception:
        time.sleep(600)
""",
    "sleeps_before_the_write": BEGIN
    + """
with SafeWriter(spark, table) as sw:
    time.sleep(600)
""",
    "stops_its_own_jvm": BEGIN
    + """
import os, psutil
with SafeWriter(spark, table) as sw:
    spark.range(4).write.format("delta").mode("append").save(sw.table)
    jvm = psutil.Process().parent()
    assert jvm.name() == "java"
    jvm.suspend()
    time.sleep(600)
""",
    "sleeps_before_success": BEGIN
    + """
with SafeWriter(spark, table) as sw:
    spark.range(4).write.format("delta").mode("append").save(sw.table)
    time.sleep(600)
""",
    "sleeps_before_success_that_decides": BEGIN
    + """
with SafeWriter(spark, table, commit_point="success") as sw:
    spark.range(4).write.format("delta").mode("append").save(sw.table)
    time.sleep(600)
""",
}
EXPECTED = {
    "sleeps_in_the_jvm": ("TIMED_OUT", "rolled_back", 3),
    "sleeps_in_a_python_worker_and_sleeps_on": ("TIMED_OUT", "rolled_back", 3),
    "sleeps_before_the_write": ("TIMED_OUT", "rolled_back", 3),
    "stops_its_own_jvm": ("INCOMPLETE", "committed", 7),
    "sleeps_before_success": ("INCOMPLETE", "committed", 7),
    "sleeps_before_success_that_decides": ("TIMED_OUT", "rolled_back", 3),
}
KILLED = {"stops_its_own_jvm", "sleeps_in_a_python_worker_and_sleeps_on"}
"""Who could ask these for requests on their way has been killed, so a marker may stay for the sweeper."""


@pytest.fixture(scope="module")
def s3() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS, LAKE], unlistable=[CHECKPOINTS]) as server:
        for name, text in JOBS.items():
            server.observer().put_object(Bucket=SCRIPTS, Key=f"{name}.py", Body=text.encode())
        yield server


def run(s3: EmbeddedS3, job: str) -> Result:
    environment = {**s3.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS}
    event = {"entryPoint": f"s3://{SCRIPTS}/{job}.py", "entryPointArguments": [f"s3a://{LAKE}/{job}"]}
    with LambdaEmulator(environment, timeout_s=TIMEOUT_S, memory_mb=1536) as emulator:
        answer = emulator.invoke(event)
        assert not answer.timed_out, emulator.tail()
        assert answer.error is not None, answer.payload
    return Result.model_validate(json.loads(answer.error.message))


@pytest.fixture(scope="module")
def results(s3: EmbeddedS3) -> dict[str, Result]:
    with ThreadPoolExecutor(len(JOBS)) as pool:
        return dict(zip(JOBS, pool.map(lambda job: run(s3, job), JOBS), strict=True))


@pytest.mark.parametrize("job", JOBS)
def test_a_job_that_meets_its_deadline_is_settled_and_says_so(
    s3: EmbeddedS3, results: dict[str, Result], job: str
) -> None:
    """Exit 124, the verdict that the table shows, no file left, and no marker of who could be asked; what is committed
    can be continued.
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
