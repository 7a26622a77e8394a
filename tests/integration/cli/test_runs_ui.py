"""`soal runs ui` opens Spark's history server on what a function has kept of a run's attempts, one of them killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psutil
import pytest
import requests

from scripts.emulator.rie import LambdaEmulator
from scripts.provision.place import ROOT
from soal.testing.s3 import EmbeddedS3
from soal.testing.s3.wire import OBSERVER
from tests.support.processes import has_ended
from tests.support.waiting import BUSY_S, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.emulator, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

CHECKPOINTS, SCRIPTS = "checkpoints", "scripts"
SCRIPT = """
import os, pathlib, signal, sys
sys.path.append(sys.argv[2])
from pyspark.sql import SparkSession
from tests.support.waiting import until

died, password = pathlib.Path(sys.argv[1]), sys.argv[4]
spark = SparkSession.builder.appName("nightly").getOrCreate()
rows = spark.range(0, 7, 1, 3).selectExpr(f"concat(cast(id as string), '{password}') AS text")
rows.write.format("noop").mode("overwrite").save()
if not died.exists():
    died.touch()
    (log,) = pathlib.Path(os.environ["TMPDIR"]).with_name("spark-events").iterdir()
    until(lambda: "SparkListenerJobEnd" in log.read_text())
    above = pathlib.Path(f"/proc/{os.getppid()}/stat").read_text()
    os.kill(int(above.rpartition(")")[2].split()[1]), signal.SIGKILL)
spark.range(5).write.format("noop").mode("overwrite").save()
"""


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedS3]:
    """An S3 on which a run has made two attempts: Java was killed in the first, the second ended well."""
    with EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS], unlistable=[CHECKPOINTS]) as server:
        server.observer().put_object(Bucket=SCRIPTS, Key="job.py", Body=SCRIPT.encode())
        variables = {**server.environment(), "SOAL_JIT": "c1", "SW_CHECKPOINT_BUCKET": CHECKPOINTS}
        died = tmp_path_factory.mktemp("job") / "died"
        event = {
            "entryPoint": f"s3://{SCRIPTS}/job.py",
            "clientToken": "nightly-1",
            "entryPointArguments": [str(died), str(ROOT), "--password", "hunter22hunter"],
        }
        with LambdaEmulator({**variables, "SOAL_EVENT_LOGS": "on"}, timeout_s=BUSY_S, memory_mb=1769) as emulator:
            first, second = emulator.invoke(event), emulator.invoke(event)
        assert first.error is not None, first.payload
        assert second.error is None, second.error
        assert not [warning for warning in second.payload["warnings"] if "event" in warning]
        yield server


@pytest.fixture
def ui(s3: EmbeddedS3, tmp_path: Path) -> Iterator[Callable[[], tuple[subprocess.Popen[str], list[Any]]]]:
    """Return a call that starts the command, and returns it with what it has printed."""
    started: list[subprocess.Popen[str]] = []

    def start() -> tuple[subprocess.Popen[str], list[Any]]:
        command = [sys.executable, "-P", "-m", "soal", "runs", "ui", "nightly-1", "--json"]
        where = ["--endpoint-url", s3.endpoint, "--bucket", CHECKPOINTS]
        variables = {**os.environ, **s3.environment(), "AWS_ACCESS_KEY_ID": OBSERVER, "TMPDIR": str(tmp_path)}
        process = subprocess.Popen(
            [*command, *where],
            cwd=ROOT,
            env=variables,
            stdout=subprocess.PIPE,
            text=True,
            # As of a terminal; whatever runs these tests may ignore the signal, and its children with it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - one system call
        )
        started.append(process)
        assert process.stdout is not None
        text = ""
        for line in process.stdout:
            text += line
            if line.rstrip() == "]":
                break
        return process, json.loads(text)

    yield start
    for process in started:
        process.kill()
        process.communicate()


def asked(address: str) -> str:
    return requests.get(address, timeout=BUSY_S).text


def test_the_history_server_shows_each_attempt_with_its_jobs(ui: Callable[..., Any], s3: EmbeddedS3) -> None:
    """By its own API: the killed one is not complete, and has what Spark had written; neither shows the secret. It
    listens on the loopback address only, and ends with Ctrl-C.
    """
    process, (killed, ended) = ui()
    address = killed["api"].rpartition("/")[0]
    (server,) = psutil.Process(process.pid).children(recursive=True)
    assert {each.laddr.ip.rpartition(":")[2] for each in server.net_connections() if each.status == "LISTEN"} == {
        "127.0.0.1"
    }

    assert (killed["attempt"], killed["isWhole"], ended["attempt"], ended["isWhole"]) == (1, False, 2, True)
    found = {one["id"]: (one["name"], one["attempts"][0]["completed"]) for one in json.loads(asked(address))}
    assert found == {killed["application"]: ("nightly", False), ended["application"]: ("nightly", True)}

    def finished(application: str) -> list[tuple[str, int]]:
        jobs = json.loads(asked(f"{address}/{application}/jobs"))
        return sorted((job["status"], job["numCompletedTasks"]) for job in jobs)

    assert finished(killed["application"]) == [("SUCCEEDED", 3)]
    assert len(finished(ended["application"])) == 2
    plans = asked(f"{address}/{ended['application']}/sql?details=true&planDescription=true")
    assert ("hunter22hunter" in plans, "[redacted]" in plans) == (False, True)
    assert "Spark Jobs" in asked(ended["url"])

    process.send_signal(signal.SIGINT)
    assert process.wait(BUSY_S) == 0
    assert not server.is_running()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_server_outlives_its_command(ui: Callable[..., Any], tmp_path: Path, number: signal.Signals) -> None:
    """Whatever ends the command; only a kill leaves the folder with the copies of the logs."""
    process, _ = ui()
    (server,) = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    process.wait(BUSY_S)
    assert until(lambda: has_ended(server))
    assert number == signal.SIGKILL or list(tmp_path.iterdir()) == []


def test_no_secret_is_in_the_bucket(s3: EmbeddedS3) -> None:
    """The logs lie in a folder of their own, under the names that Spark's history server expects."""
    client = s3.observer()
    keys = [each["Key"] for each in client.list_objects_v2(Bucket=CHECKPOINTS, Prefix="eventlogs/")["Contents"]]
    assert [key.endswith(".inprogress") for key in keys] == [True, False]
    for key in keys:
        assert b"hunter22hunter" not in client.get_object(Bucket=CHECKPOINTS, Key=key)["Body"].read()
