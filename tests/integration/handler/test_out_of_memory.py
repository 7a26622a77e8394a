"""Handler and job under a real memory limit: the kernel chooses a victim, and the verdict is still true."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from handler.outcome.result import Result
from soal.home import Home, python_of
from soal.testing.s3 import EmbeddedS3
from tests.support.lake import CHECKPOINTS, LAKE, Lake

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.spark]

ROOT = Path(__file__).parents[3]
PYTHON = python_of(Home.of().path)
LIMIT_MB = 1_500
CGROUPS = Path("/sys/fs/cgroup")
JOB = f"""
from pyspark.sql import SparkSession
from safewriter import SafeWriter
spark = SparkSession.builder.getOrCreate()
table = "s3a://{LAKE}/hungry"
spark.range(3).write.format("delta").save(table)
with SafeWriter(spark, table, commit_point="success") as sw:
    spark.range(4).write.format("delta").mode("append").save(sw.table)
    eaten = []
    for _ in range(4 * {LIMIT_MB} // 64):
        eaten.append(b"x" * (64 << 20))
    sw.success()
"""
EATER = f"""
import subprocess, sys
from handler.process.memory_kills import read_counters
first = "open('/proc/self/oom_score_adj', 'w').write('1000')"
hungry = first + "; eaten = [b'x' * (64 << 20) for _ in range({LIMIT_MB} // 16)]"
before = read_counters()
killed = subprocess.run([sys.executable, "-c", hungry])
print(killed.returncode, before.until(read_counters()).job)
"""
INVOKE = """
import json, time
from handler.app import lambda_handler
class Context:
    aws_request_id, memory_limit_in_mb = "r", "1024"
    function_name = invoked_function_arn = function_version = "f"
    end = time.time() + 120
    def get_remaining_time_in_millis(self): return int((self.end - time.time()) * 1000)
print("RESULT", json.dumps(lambda_handler("s3://scripts/job.py", Context())))
"""


def new_group() -> Path | None:
    """Make a memory control group with the limit; None if this machine forbids it."""
    version_1 = (CGROUPS / "memory", "memory.limit_in_bytes")
    version_2 = (CGROUPS, "memory.max")
    parent, limit = version_1 if version_1[0].is_dir() else version_2
    group = parent / f"soal-test-{uuid.uuid4().hex}"
    try:
        group.mkdir()
        (group / limit).write_text(str(LIMIT_MB << 20))
    except OSError:
        return None
    return group


@pytest.fixture
def group() -> Iterator[Path]:
    made = new_group()
    if made is None:
        pytest.skip("needs root and a memory control group that can be made here")
    yield made
    made.rmdir()


@pytest.mark.parametrize("stranger", [False, True], ids=["alone", "beside another"])
def test_a_kill_in_a_group_of_ones_own_is_counted(group: Path, *, stranger: bool) -> None:
    """The kernel kills a child; in a group with other processes, the kill may have hit those."""
    other = subprocess.Popen(["sleep", "600"]) if stranger else None
    try:
        if other is not None:
            (group / "cgroup.procs").write_text(str(other.pid))
        done = subprocess.run(
            ["sh", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"', str(group), sys.executable, "-c", EATER],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        if other is not None:
            other.kill()
            other.wait()
    status, own = done.stdout.split()
    assert (status, own) == ("-9", "None" if stranger else "1")


def test_a_job_that_eats_all_memory_is_killed_by_the_kernel_and_settled(group: Path) -> None:
    """The kernel kills the job and not the handler, which reports it, undoes the write and names the remedy."""
    with EmbeddedS3(buckets=[LAKE, "scripts", CHECKPOINTS], unlistable=[CHECKPOINTS]) as s3:
        s3.observer().put_object(Bucket="scripts", Key="job.py", Body=JOB.encode())
        done = subprocess.run(
            ["sh", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"', str(group), str(PYTHON), "-B", "-c", INVOKE],
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(ROOT),
                "SW_CHECKPOINT_BUCKET": CHECKPOINTS,
                "SOAL_ERRORS": "return",
                **s3.environment(),
            },
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        answers = [line.removeprefix("RESULT ") for line in done.stdout.splitlines() if line.startswith("RESULT ")]
        assert len(answers) == 1, done.stdout[-3000:] + done.stderr[-3000:]
        result = Result.model_validate(json.loads(answers[0]))
        assert (result.state, result.error.type if result.error else None) == ("FAILED", "OutOfMemory"), answers[0]
        assert "more memory" in result.state_details
        assert [write.status for write in result.writes] == ["rolled_back"]
        lake = Lake(s3.observer(), s3.endpoint, "hungry")
        assert lake.operations() == ["WRITE", "WRITE", "SAFEWRITER REVERT"]
        assert lake.rows() == 3
        lake.check()
