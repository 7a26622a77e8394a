"""A sandbox that is initialised before its first event, as with provisioned concurrency, under the real emulator."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from handler.outcome.result import Result
from scripts.emulator.rie import LambdaEmulator
from soal.testing.s3 import EmbeddedS3
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.emulator, pytest.mark.spark, pytest.mark.slow]

CHECKPOINTS, SCRIPTS = "checkpoints", "scripts"
HANDLER = "tests.integration.handler.provisioned_handler.lambda_handler"
HELD = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
assert spark.range(3).count() == 3
print("HELD", spark._jvm.java.lang.ProcessHandle.current().pid())
"""


@pytest.fixture(scope="module")
def s3() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS], unlistable=[CHECKPOINTS]) as server:
        server.observer().put_object(Bucket=SCRIPTS, Key="held.py", Body=HELD.encode())
        yield server


def run(emulator: LambdaEmulator) -> Result:
    answer = emulator.invoke({"script": f"s3://{SCRIPTS}/held.py"})
    result = Result.model_validate(answer.payload if answer.error is None else json.loads(answer.error.message))
    assert result.state == "SUCCESS", result.state_details
    return result


def test_the_first_run_is_a_warm_one(s3: EmbeddedS3) -> None:
    """Its JVM was ready when the event came, and the next run uses the same one."""
    variables = {**s3.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS}
    with LambdaEmulator(variables, timeout_s=BUSY_S, handler=HANDLER) as emulator:
        first, second = run(emulator), run(emulator)
    assert (first.cold_start, first.warm_start, second.cold_start, second.warm_start) == (True, True, False, True)
    assert first.log_tail == second.log_tail != ()


def test_a_machine_for_another_timeout_is_not_taken(s3: EmbeddedS3) -> None:
    """Jobs of a minute compile differently from longer ones, so a function with a wrong timeout starts anew."""
    variables = {**s3.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS, "SOAL_TIMEOUT_S": "60"}
    with LambdaEmulator(variables, timeout_s=BUSY_S, handler=HANDLER) as emulator:
        first, second = run(emulator), run(emulator)
    assert (first.warm_start, second.warm_start) == (False, True)


def test_without_it_the_first_run_is_a_cold_one(s3: EmbeddedS3) -> None:
    """Java starts in parallel with its first steps."""
    variables = {**s3.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS}
    with LambdaEmulator(variables, timeout_s=BUSY_S) as emulator:
        assert not run(emulator).warm_start
