"""A local Spark standalone cluster: one master, one worker, executors in processes of their own."""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil
import pyspark

from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["CLUSTER", "standalone"]

_SPARK_HOME: Final = Path(pyspark.__file__).parent
CLUSTER: Final = {
    "SPARK_HOME": str(_SPARK_HOME),
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_SCALA_VERSION": "2.13",  # without it no executor starts, and no log says why
}
"""Variables of its processes, including the driver."""


@contextmanager
def standalone(folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Start a master and a worker with two cores, whose executors have these variables; yield the master's URL."""
    variables = {**os.environ, **CLUSTER, **environment}
    leader = _Daemon(folder, variables, "master.Master", "--port", "0")
    try:
        url = leader.find(r"Starting Spark master at (spark://\S+)")
        worker = _Daemon(folder, variables, "worker.Worker", "--cores", "2", "--memory", "2g", "-d", str(folder), url)
        try:
            worker.find(r"(Successfully registered with master)")
            yield url
        finally:
            worker.stop()
    finally:
        leader.stop()


class _Daemon:
    """A Spark daemon; its log holds its address."""

    def __init__(self, folder: Path, variables: Mapping[str, str], name: str, *arguments: str) -> None:
        self.log = folder / f"{name}.log"
        java = ["java", "-Xmx512m", "-cp", f"{_SPARK_HOME}/jars/*", f"org.apache.spark.deploy.{name}"]
        command = [*java, "--host", "127.0.0.1", "--webui-port", "0", *arguments]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, env=dict(variables), stdout=log, stderr=subprocess.STDOUT, cwd=folder
            )

    def find(self, pattern: str) -> str:
        """Wait until the log holds the pattern and return its first group."""
        assert until(lambda: re.search(pattern, self.log.read_text()) is not None), self.log.read_text()
        match = re.search(pattern, self.log.read_text())
        assert match is not None
        return match[1]

    def stop(self) -> None:
        """Stop it and the processes that it has started."""
        tree = [*psutil.Process(self.process.pid).children(recursive=True), psutil.Process(self.process.pid)]
        for process in tree:
            process.kill()
        psutil.wait_procs(tree, timeout=10)
        self.process.wait(10)
