"""What a cold run takes beside the way of aws-samples/spark-on-aws-lambda: the same CSV file into a Delta table.

There, the handler calls `spark-submit` with one gigabyte of heap, whatever the function has, on PySpark and its jars as
they come. Here, the job is guarded and supervised, in a function that has never run, on the host or in the image. In
turn, on one embedded S3; the table is new each time. What the other handler does before spark-submit is not counted.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from handler.classpath import find_pyspark
from scripts.emulator.s3 import EmbeddedS3
from scripts.emulator.spark import JARS, ROOT
from scripts.soal.problem import EXIT_FAILED, Problem
from scripts.soal.sample import BUCKETS, CHECKPOINTS, DATA, LAKE, SCRIPTS, SOURCE_KEY, put_sample

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scripts.soal.invocation import Function

__all__ = ["StartCost", "measure"]

_JOB: Final = "accommodations_delta.py"
_PEER_JOB: Final = "accommodations_delta_unguarded.py"
_TIMEOUT_S: Final = 300
_PEER: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.hadoop.fs.s3a.path.style.access": "true",
    "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
    "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
}


@dataclass(frozen=True, slots=True)
class StartCost:
    """Medians in milliseconds over `rounds` pairs, from the first process to the last one's end, and their ratio.

    `image` is None if the function ran on the host.
    """

    rounds: int
    image: str | None
    peer_ms: float
    soal_ms: float
    ratio: float
    ratio_min: float
    ratio_max: float


def measure(
    rounds: int,
    image: str | None,
    function: Callable[[Mapping[str, str]], Function],
    progress: Callable[[int], None] = lambda _: None,
) -> StartCost:
    """Run `rounds` pairs, the peer first; `function` makes ours, with the variables that reach the S3.

    Raises `Problem` if a job fails.
    """
    pairs = []
    with EmbeddedS3(buckets=BUCKETS) as s3:
        put_sample(s3.observer())
        for turn in range(rounds):
            peer_ms = _peer(s3)
            pairs.append((peer_ms, _soal(function({**s3.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS}))))
            progress(turn + 1)
    ratios = [soal_ms / peer_ms for peer_ms, soal_ms in pairs]
    return StartCost(
        rounds=rounds,
        image=image,
        peer_ms=statistics.median(peer_ms for peer_ms, _ in pairs),
        soal_ms=statistics.median(soal_ms for _, soal_ms in pairs),
        ratio=statistics.median(ratios),
        ratio_min=min(ratios),
        ratio_max=max(ratios),
    )


def _arguments() -> list[str]:
    return ["--source", f"s3a://{DATA}/{SOURCE_KEY}", "--table", f"s3a://{LAKE}/{uuid.uuid4().hex}"]


def _peer(s3: EmbeddedS3) -> float:
    spark_home = find_pyspark()
    if spark_home is None:
        raise Problem("PySpark is not installed", todo="run scripts/setup", exit_code=EXIT_FAILED)
    confs = {**_PEER, "spark.hadoop.fs.s3a.endpoint": s3.endpoint, "spark.driver.host": "127.0.0.1"}
    with tempfile.TemporaryDirectory(prefix="soal-bench-") as place:
        command = [
            str(spark_home / "bin" / "spark-submit"),
            *("--driver-memory", "1g"),
            *("--driver-class-path", f"{JARS}/*"),
            *(part for key, value in confs.items() for part in ("--conf", f"{key}={value}")),
            str(ROOT / "scripts" / "jobs" / _PEER_JOB),
            *_arguments(),
        ]
        environment = {
            **os.environ,
            **s3.environment(),
            "SPARK_HOME": str(spark_home),
            "PYSPARK_PYTHON": sys.executable,
            "TMPDIR": place,
        }
        started = time.perf_counter()
        done = subprocess.run(
            command, env=environment, cwd=place, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
        took_ms = (time.perf_counter() - started) * 1000
    if done.returncode != 0:
        raise Problem(f"spark-submit failed:\n{done.stderr[-2000:]}", todo="see above", exit_code=EXIT_FAILED)
    return took_ms


def _soal(function: Function) -> float:
    report = function.invoke({"entryPoint": f"s3://{SCRIPTS}/jobs/{_JOB}", "entryPointArguments": _arguments()})
    if report.exit_code != 0:
        told = report.problem or (report.result.state_details if report.result is not None else "")
        raise Problem(f"the job failed: {told}", todo="see `soal doctor`", exit_code=EXIT_FAILED)
    return float(report.duration_ms)
