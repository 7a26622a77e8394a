"""The same guarded job on a Spark standalone cluster: one master, one worker, executors in processes of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pyspark
import pytest

from scripts.emulator.s3 import EmbeddedS3
from tests.support.lake import CHECKPOINTS, LAKE, Lake
from tests.support.processes import Child
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.matrix]

SPARK_HOME = Path(pyspark.__file__).parent
ENVIRONMENT = {
    "SPARK_HOME": str(SPARK_HOME),
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_SCALA_VERSION": "2.13",  # without it no executor starts, and nobody says why
}


class Daemon:
    """A Spark daemon; its log says where it listens."""

    def __init__(self, folder: Path, name: str, *arguments: str) -> None:
        self.log = folder / f"{name}.log"
        environment = {**os.environ, **ENVIRONMENT, **S3_ENVIRONMENT}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                ["java", "-Xmx512m", "-cp", f"{SPARK_HOME}/jars/*", f"org.apache.spark.deploy.{name}", *arguments],
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
            )

    def find(self, pattern: str) -> str:
        """Wait until the log holds the pattern and return its first group."""
        assert until(lambda: re.search(pattern, self.log.read_text()) is not None), self.log.read_text()
        match = re.search(pattern, self.log.read_text())
        assert match is not None
        return match[1]

    def stop(self) -> None:
        """End it and what it has started."""
        tree = [*psutil.Process(self.process.pid).children(recursive=True), psutil.Process(self.process.pid)]
        for process in tree:
            process.kill()
        psutil.wait_procs(tree, timeout=10)
        self.process.wait(10)


S3_ENVIRONMENT: dict[str, str] = {}


@pytest.fixture(scope="module")
def s3() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=(LAKE, CHECKPOINTS), unlistable=(CHECKPOINTS,)) as server:
        S3_ENVIRONMENT.update(server.environment())
        yield server


@pytest.fixture(scope="module")
def master(s3: EmbeddedS3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A master and a worker with two cores; returns the master's URL."""
    folder = tmp_path_factory.mktemp("cluster")
    leader = Daemon(folder, "master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    try:
        url = leader.find(r"Starting Spark master at (spark://\S+)")
        arguments = ["--cores", "2", "--memory", "2g", "-d", str(folder), "--webui-port", "0", url]
        worker = Daemon(folder, "worker.Worker", "--host", "127.0.0.1", *arguments)
        try:
            worker.find(r"(Successfully registered with master)")
            yield url
        finally:
            worker.stop()
    finally:
        leader.stop()


def test_a_guarded_job_ends_the_same_on_a_cluster(s3: EmbeddedS3, master: str) -> None:
    """A create, an append and an append that fails: the same rows, verdicts and files as in one process."""
    lake = Lake(s3.observer(), s3.endpoint, f"tables/{uuid.uuid4().hex}")
    environment = {
        **ENVIRONMENT,
        **s3.environment(),
        "SW_CHECKPOINT_BUCKET": CHECKPOINTS,
        "SOAL_RUN_KEY": uuid.uuid4().hex,
        "PYSPARK_PYTHON": sys.executable,
    }
    with Child("tests.integration.safewriter.cluster_job", master, lake.table, environment=environment) as job:
        assert job.end() == 0, job.said()
    assert job.lines[-3:] == ["create committed", "append committed", "fails rolled_back"]
    assert lake.rows() == 30
    assert lake.operations() == ["WRITE", "WRITE"]
    assert lake.orphans() == set()
    assert all(document.attempt.cleaned for document in lake.documents())
    lake.check()
