"""Jobs that are told to stop and then end with exit code 0, or whose main thread or forked process had done so before:
none of them is a success.

Each job triggers the deadline itself once it is where it shall be found, by a file that advances the handler's clock.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from handler.outcome.result import Result
from handler.runs.store import Runs
from safewriter.deadline import epoch_ms
from safewriter.objects.s3 import S3ObjectStore
from scripts.emulator.rie import LambdaEmulator
from soal.testing.s3 import EmbeddedS3
from tests.support.lake import CHECKPOINTS, LAKE, Lake
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.emulator, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

TIMEOUT_S = 280
LEAD_MS = 60_000
SCRIPTS = "soal-scripts"

BEGIN = f"""
import os, pathlib, signal, sys, threading, time
from pyspark.sql import SparkSession
from safewriter import SafeWriter
spark = SparkSession.builder.getOrCreate()
place = pathlib.Path(sys.argv[1])
def let_deadline_come():
    terminate_at_ms = int(os.environ["SOAL_DEADLINE_EPOCH_MS"]) - {LEAD_MS} // 2
    (place / "new").write_text(str(terminate_at_ms - time.time_ns() // 1_000_000))
    (place / "new").rename(place / "ahead")
def write(name, step=None):
    with SafeWriter(spark, f"s3a://{LAKE}/{{name}}", step=step) as sw:
        spark.range(10).write.format("delta").mode("append").save(sw.table)
        sw.success()
"""
JOBS = {
    "ends_in_order": BEGIN
    + """
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
write("ends_in_order", step="day-0")
let_deadline_come()
time.sleep(600)
write("ends_in_order", step="day-1")
""",
    "has_a_thread": BEGIN
    + """
def export():
    while "python_exited" not in pathlib.Path(os.environ["SOAL_JOURNAL"]).read_text(): time.sleep(0.01)
    let_deadline_come()
    time.sleep(600)
threading.Thread(target=export).start()
write("has_a_thread")
""",
    "has_forked": BEGIN
    + """
if os.fork() == 0:
    sys.exit(0)
os.wait()
(place / "forked").touch()
time.sleep(600)
""",
}


@pytest.fixture(scope="module")
def s3() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS, LAKE], unlistable=[CHECKPOINTS]) as server:
        for name, text in JOBS.items():
            server.observer().put_object(Bucket=SCRIPTS, Key=f"{name}.py", Body=text.encode())
        yield server


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clock")


@pytest.fixture(scope="module")
def function(s3: EmbeddedS3, place: Path) -> Iterator[LambdaEmulator]:
    environment = {
        **s3.environment(),
        "SOAL_JIT": "c1",
        "SW_CHECKPOINT_BUCKET": CHECKPOINTS,
        "SW_WARN_BEFORE_MS": str(LEAD_MS),
        "TEST_CLOCK_FILE": str(place / "ahead"),
    }
    handler = "tests.integration.handler.moved_clock.lambda_handler"
    with LambdaEmulator(environment, timeout_s=TIMEOUT_S, memory_mb=1536, handler=handler) as emulator:
        yield emulator


def run(function: LambdaEmulator, job: str, place: Path) -> Result:
    (place / "ahead").unlink(missing_ok=True)
    event = {"entryPoint": f"s3://{SCRIPTS}/{job}.py", "entryPointArguments": [str(place)], "clientToken": job}
    answer = function.invoke(event)
    assert not answer.timed_out, function.tail()
    assert answer.error is not None, answer.payload
    return Result.model_validate(json.loads(answer.error.message))


def test_a_script_that_answers_sigterm_by_exit_0_has_not_ended_by_itself(
    s3: EmbeddedS3, function: LambdaEmulator, place: Path
) -> None:
    """The step that it has committed stays, and a retry continues after it."""
    result = run(function, "ends_in_order", place)
    assert (result.state, result.error and result.error.type) == ("INCOMPLETE", "DeadlineExceeded"), result
    assert [(write.step, write.status) for write in result.writes] == [("day-0", "committed")]
    assert Lake(s3.observer(), s3.endpoint, "ends_in_order").rows() == 10


def test_a_script_whose_thread_runs_on_has_not_ended(function: LambdaEmulator, place: Path) -> None:
    """Its main thread ended well before the deadline, after a committed write."""
    result = run(function, "has_a_thread", place)
    assert (result.state, result.error and result.error.type) == ("INCOMPLETE", "DeadlineExceeded"), result
    assert [write.status for write in result.writes] == ["committed"]


def test_a_process_that_the_script_has_forked_is_no_witness_of_its_end(
    s3: EmbeddedS3, function: LambdaEmulator, place: Path
) -> None:
    """It has ended with exit code 0; the script itself is cancelled."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, function, "has_forked", place)
        assert until((place / "forked").exists)
        runs = Runs(S3ObjectStore(s3.observer(), CHECKPOINTS, ""), epoch_ms)
        stored = runs.read("has_forked")
        assert stored is not None
        runs.request_cancel(stored.record, "test")
        assert running.result().state == "CANCELLED"
