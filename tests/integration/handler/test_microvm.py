"""A real job in a real started Spark, through the hooks of a Lambda MicroVM."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from handler.outcome.result import Result
from handler.runs.store import result_key
from scripts.emulator.microvm import MicrovmEmulator
from soal.testing.s3 import EmbeddedS3
from tests.support.waiting import BUSY_S, until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.emulator, pytest.mark.spark, pytest.mark.slow]

CHECKPOINTS, SCRIPTS, LAKE = "checkpoints", "scripts", "lake"
APPEND = """
from pyspark.sql import SparkSession
from safewriter import SafeWriter
spark = SparkSession.builder.getOrCreate()
with SafeWriter(spark, "s3a://lake/rows") as block:
    spark.range(1).write.format("delta").mode("append").save(block.table)
    block.success()
"""
ENDLESS = APPEND.replace("    block.success()", "    import time; print('WAITS', flush=True); time.sleep(10_000)")
QUICK = ("--rounds", "2", "--no-lessons")


@pytest.fixture
def s3() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS, LAKE], unlistable=[CHECKPOINTS]) as server:
        for name, text in (("append.py", APPEND), ("endless.py", ENDLESS)):
            server.observer().put_object(Bucket=SCRIPTS, Key=name, Body=text.encode())
        yield server


def machine(s3: EmbeddedS3) -> MicrovmEmulator:
    variables = {**s3.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS}
    return MicrovmEmulator(variables, timeout_s=10 * BUSY_S, words=QUICK)


def event(name: str) -> str:
    return json.dumps({"entryPoint": f"s3://{SCRIPTS}/{name}", "clientToken": "t"})


def result_of(s3: EmbeddedS3, microvm_id: str) -> Result:
    key = result_key(microvm_id)
    assert until(lambda: key in s3.keys(CHECKPOINTS))
    body = s3.observer().get_object(Bucket=CHECKPOINTS, Key=key)["Body"].read()
    return Result.model_validate_json(body)


def test_the_job_of_a_microvm_finds_a_warm_spark_and_ends_the_microvm(s3: EmbeddedS3) -> None:
    """Its result is where every run's result is, and under the MicroVM's id; nothing of the warm-up is in its S3."""
    with machine(s3) as emulator:
        emulator.build(within_s=4 * BUSY_S)
        assert s3.keys(CHECKPOINTS) == s3.keys(LAKE) == ()
        microvm_id = emulator.run(event("append.py"))
        result = result_of(s3, microvm_id)
        assert until(lambda: emulator.terminated == [microvm_id])
        assert emulator.call("terminate")[0] == 200
    assert (result.state, result.warm_start) == ("SUCCESS", True), result
    assert [write.status for write in result.writes] == ["committed"]
    assert result_key(str(result.run_id)) in s3.keys(CHECKPOINTS)


def test_a_terminated_job_is_settled_before_the_microvm_ends(s3: EmbeddedS3) -> None:
    """The hook comes long before the job's deadline. The open write, whose rows are in the table, gets its verdict, and
    a retry may go on.
    """
    with machine(s3) as emulator:
        emulator.build(within_s=4 * BUSY_S)
        microvm_id = emulator.run(event("endless.py"))
        assert until(lambda: "WAITS" in emulator.tail())
        assert emulator.call("terminate")[0] == 200
        assert result_key(microvm_id) in s3.keys(CHECKPOINTS)
    result = result_of(s3, microvm_id)
    assert result.state == "INCOMPLETE", result
    assert [write.status for write in result.writes] == ["committed"]
