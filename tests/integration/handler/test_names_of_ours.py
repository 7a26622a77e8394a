"""A job with modules of the same names as SoAL's, under the real emulator with real Spark."""

from __future__ import annotations

import io
import json
from typing import Final
from zipfile import ZipFile

import pytest

from handler.outcome.result import Result
from scripts.emulator.rie import LambdaEmulator
from soal.testing.s3 import EmbeddedS3
from tests.support.waiting import BUSY_S

pytestmark = [pytest.mark.emulator, pytest.mark.spark]

JOB: Final = """
import os, zipfile
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

import handler, infra, scripts.daily
from safewriter import SafeWriter

def words(_):
    import handler, infra, scripts.daily, tests.late
    return f"{handler.WORD} {infra.WORD} {scripts.daily.WORD} {tests.late.WORD}"

if __name__ == "__main__":
    spark = SparkSession.builder.getOrCreate()
    with zipfile.ZipFile("late.zip", "w") as late:
        late.mkdir("tests")
        late.writestr("tests/late.py", "WORD = 'late'")
    spark.sparkContext.addPyFile(os.path.abspath("late.zip"))
    with SafeWriter(spark, "s3a://lake/words") as sw:
        spark.range(3).select(udf(words, "string")("id").alias("words")).write.format("delta").save(sw.table)
        sw.success()
    import tests.late
    print("driver:", handler.WORD, infra.WORD, scripts.daily.WORD, tests.late.WORD)
    print("worker:", *spark.read.format("delta").load("s3a://lake/words").distinct().first())
    if handler.WORD: raise handler.Mine("as it is")
"""
HANDLER: Final = "WORD = 'mine'\nclass Mine(Exception): pass"


def test_the_job_s_own_modules_win_in_driver_and_workers() -> None:
    """Its files, and packages without `__init__` in zips of the event or the script, win; the guard works, and the
    job's end is reported as usual.
    """
    content = io.BytesIO()
    with ZipFile(content, "w") as archive:
        archive.mkdir("scripts")
        archive.writestr("scripts/daily.py", "WORD = 'daily'")
    objects = {
        "job.py": JOB.encode(),
        "handler.py": HANDLER.encode(),
        "infra.py": b"WORD = 'cheap'",
        "lib.zip": content.getvalue(),
    }
    with EmbeddedS3(buckets=["checkpoints", "scripts", "lake"], unlistable=["checkpoints"]) as s3:
        for name, body in objects.items():
            s3.observer().put_object(Bucket="scripts", Key=name, Body=body)
        environment = {**s3.environment(), "SOAL_JIT": "c1", "SW_CHECKPOINT_BUCKET": "checkpoints"}
        with LambdaEmulator(environment, timeout_s=BUSY_S, memory_mb=1536) as function:
            answer = function.invoke(
                {
                    "entryPoint": "s3://scripts/job.py",
                    "pyFiles": [f"s3://scripts/{name}" for name in objects if name != "job.py"],
                }
            )
    assert answer.error is not None, "the script raises at its end"
    result = Result.model_validate(json.loads(answer.error.message))
    told = [line for line in result.log_tail if line.startswith(("driver:", "worker:"))]
    assert told == ["driver: mine cheap daily late", "worker: mine cheap daily late"], result.log_tail
    assert [(write.status, write.rows) for write in result.writes] == [("committed", 3)]
    assert result.error is not None
    assert (result.error.type, result.error.message) == ("Mine", "Mine: as it is (job.py, line 25)")
    assert result.timings.session_ms is not None
