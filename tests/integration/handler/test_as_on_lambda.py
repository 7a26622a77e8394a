"""The handler in Lambda's environment: a read-only root, a user without a name, no HOME, no /dev/shm."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from handler.outcome.result import Result
from soal.home import Home, python_of
from soal.testing.s3 import EmbeddedS3

pytestmark = [pytest.mark.spark]

ROOT = Path(__file__).parents[3]
PYTHON = python_of(Home.of().path)
JOB = """
import os
from pyspark.sql import SparkSession
for place in ("/var/task-note", os.path.expanduser("~/note"), "note", "/tmp/note"):
    try:
        open(place, "w").close(); print(place.split("/")[-1], "written")
    except OSError as error:
        print(place, error.strerror)
print("oom", int(open("/proc/self/oom_score_adj").read()))
spark = SparkSession.builder.getOrCreate()
spark.range(10).write.format("delta").save("s3a://lake/t")
print(os.getuid(), spark.read.format("delta").load("s3a://lake/t").count())
"""
INVOKE = """
import json, time
from handler.app import lambda_handler
class Context:
    aws_request_id, memory_limit_in_mb = "r", "2048"
    function_name = invoked_function_arn = function_version = "f"
    end = time.time() + 90
    def get_remaining_time_in_millis(self): return int((self.end - time.time()) * 1000)
print("RESULT", json.dumps(lambda_handler("s3://scripts/job.py", Context())))
"""


def closed_ancestor(path: Path) -> Path | None:
    """Return the first directory on the path that other users may not enter."""
    return next((place for place in reversed(path.parents) if not place.stat().st_mode & stat.S_IXOTH), None)


def opened(path: Path, by_way_of: Path) -> list[str]:
    """Return commands that make `path` reachable for every user in this mount namespace."""
    closed = closed_ancestor(path)
    if closed is None:
        return []
    place, hidden, shown = (shlex.quote(str(one)) for one in (path, closed, by_way_of))
    return [
        f"mount --bind {place} {shown}",
        f"mount -t tmpfs -o mode=755 tmpfs {hidden} && mkdir -p {place} && mount --bind {shown} {place}",
    ]


@pytest.mark.skipif(
    os.getuid() != 0 or not all(map(shutil.which, ("unshare", "setpriv", "mount"))),
    reason="needs root for a mount namespace; run the tests as root to include it",
)
def test_a_job_runs_on_a_read_only_root_as_a_user_without_a_name(tmp_path: Path) -> None:
    """Only /tmp is written; when memory runs out the kernel kills the job first; Hadoop has a user; the answer is a
    success.
    """
    python, root = Path(sys.base_prefix), shlex.quote(str(ROOT))
    # A working tree below /tmp must outlast the job's empty /tmp.
    saved = ("mount -t tmpfs -o mode=755 tmpfs /srv && mkdir /srv/root", f"mount --bind {root} /srv/root")
    restored = (f"mkdir -p {root} && mount --bind /srv/root {root}",)
    steps = [
        "set -e; mount --make-rprivate /",
        *opened(python, tmp_path),
        *(saved if ROOT.is_relative_to("/tmp") else ()),
        "mount -t tmpfs -o size=1g,mode=1777 tmpfs /tmp",
        *(restored if ROOT.is_relative_to("/tmp") else ()),
        "mount -t tmpfs -o ro,mode=000 tmpfs /dev/shm || true",
        "for place in $(awk '{print $2}' /proc/mounts | grep -vE '^/(proc|sys|dev|tmp)(/|$)'); do",
        "mount -o remount,bind,ro $place; done",
        'exec setpriv --reuid 4711 --regid 4711 --clear-groups "$@"',
    ]
    with EmbeddedS3(buckets=["lake", "scripts", "checkpoints"], unlistable=["checkpoints"]) as s3:
        s3.observer().put_object(Bucket="scripts", Key="job.py", Body=JOB.encode())
        environment = {**s3.environment(), "SW_CHECKPOINT_BUCKET": "checkpoints", "SOAL_ERRORS": "return"}
        variables = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": str(ROOT), **environment}
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", "\n".join(steps), "sh", str(PYTHON), "-B", "-c", INVOKE],
            env=variables,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    answers = [line.removeprefix("RESULT ") for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert len(answers) == 1, done.stdout[-3000:] + done.stderr[-3000:]
    result = Result.model_validate(json.loads(answers[0]))
    assert result.log_tail == (
        "/var/task-note Read-only file system",
        "note written",
        "note written",
        "note written",
        "oom 900",
        "4711 10",
    )
    assert result.state == "SUCCESS"
