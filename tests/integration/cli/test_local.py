"""`soal local …` and `soal doctor` on this machine: S3 and function, jobs of each variant, answers, exit codes."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest

from handler.outcome.result import Result
from scripts.provision.__main__ import main as setup
from scripts.provision.place import ROOT
from scripts.tables.delta import view
from soal.local.names import BUCKETS
from soal.target import local_target
from soal.testing.s3 import EmbeddedS3

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_s3 import S3Client

    from .conftest import Soal


SUMS = """
from pyspark.sql import SparkSession
from pyspark.sql.functions import pandas_udf
spark = SparkSession.builder.getOrCreate()
frame = spark.range(5).select(pandas_udf(lambda column: 2 * column, "long")("id").alias("id"))
assert frame.toPandas()["id"].sum() == 20
drivers = spark._jvm.java.sql.DriverManager.getDrivers()  # MySQL's starts a thread, unless it is told not to
assert drivers.hasMoreElements()
"""


@pytest.fixture(scope="module")
def endpoint(soal: Soal) -> str:
    """The endpoint of a running local S3."""
    return str(soal("local", "up", "--json").json["endpoint"])


@pytest.fixture(scope="module")
def client(endpoint: str) -> S3Client:
    return local_target(endpoint).client()


def script(client: S3Client, name: str, text: str) -> str:
    client.put_object(Bucket="soal-scripts", Key=f"tests/{name}.py", Body=text.encode())
    return f"s3://soal-scripts/tests/{name}.py"


def test_up_status_down(soal: Soal) -> None:
    """`up` is idempotent, `status` reports what runs, `down` ends it; without a local S3, commands say what to do."""
    first, second = soal("local", "up", "--json"), soal("local", "up", "--json", "--bucket", "soal-lake")
    assert (first.code, second.code) == (0, 0)
    assert first.json["endpoint"] == second.json["endpoint"]
    status = soal("local", "status")
    assert status.code == 0
    assert first.json["endpoint"] in status.out
    assert all(bucket in status.out for bucket in BUCKETS)
    assert soal("local", "down", "--json").json == {"running": False}
    assert soal("local", "status", "--json").json == {"running": False}
    assert soal("local", "status").code == 1
    refused = soal("local", "invoke", "s3://soal-scripts/jobs/accommodations_delta.py", "--json")
    assert (refused.code, json.loads(refused.out)["exitCode"]) == (2, 2)
    assert "soal local up" in refused.err


@pytest.mark.spark
@pytest.mark.emulator
def test_a_guarded_job_succeeds_and_a_person_can_read_it(soal: Soal, endpoint: str, client: S3Client) -> None:
    """The sample job appends the sample file whole, once; the summary names table, verdict and rows."""
    arguments = ["--source", "s3a://soal-data/accommodations.csv", "--table", "s3a://soal-lake/cli"]
    event = {
        "entryPoint": "s3://soal-scripts/jobs/accommodations_delta.py",
        "clientToken": "cli-1",
        "entryPointArguments": arguments,
    }
    answer = soal("local", "invoke", "-", stdin=json.dumps(event))
    assert answer.code == 0, answer
    for part in ("SUCCESS", "s3://soal-lake/cli", "committed", "22,248"):
        assert part in answer.out
    assert "\x1b" not in answer.out + answer.err
    seen = view(client, "soal-lake", "cli", local_target(endpoint).aws)
    assert (seen.version, seen.rows, seen.orphans) == (0, 22_248, ())


@pytest.mark.spark
@pytest.mark.emulator
def test_a_job_finds_the_packages_of_its_variant_and_no_others(soal: Soal, client: S3Client) -> None:
    """What works here works in the image, and what is missing there is missing here, with the same sentence: this
    test's environment has more packages than either.
    """
    uri = script(client, "frames", "import pandas\n" + SUMS)
    slim = soal("local", "invoke", uri, "--json").json
    assert "its variant full does" in slim["stateDetails"]
    assert slim["error"]["usage"]

    assert setup(["--variant", "full", "--without-archive"]) == 0
    link = soal.home / "full"
    if not link.exists():
        link.symlink_to(ROOT / ".soal" / "full")
    full = soal("local", "invoke", uri, "--variant", "full", "--json")
    assert (full.json["state"], full.json["logTail"]) == ("SUCCESS", []), full
    other = soal("local", "invoke", script(client, "other", "import moto\n"), "--variant", "full", "--json").json
    assert "imports moto, which neither the image nor the job's pyFiles have" in other["stateDetails"]


@pytest.mark.emulator
def test_json_is_the_result_document_and_nothing_else(soal: Soal, client: S3Client) -> None:
    """A script's own exit code makes FAILED and exit 1; stdout is the document, stderr is empty without a terminal."""
    uri = script(client, "three", "import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.exit(3)\n")
    answer = soal("local", "invoke", uri, "--json")
    assert answer.code == 1
    result = Result.model_validate(answer.json)
    assert (result.state, result.exit_code) == ("FAILED", 3)
    assert set(result.log_tail) >= {"out", "err"}
    assert answer.err == ""


@pytest.mark.emulator
def test_a_job_past_its_deadline_exits_124(soal: Soal, client: S3Client) -> None:
    """The handler answers TIMED_OUT before the emulator's own kill."""
    uri = script(client, "sleeps", "import time\ntime.sleep(600)\n")
    answer = soal("local", "invoke", uri, "--json", "--timeout-s", "8")
    assert (answer.code, answer.json["state"]) == (124, "TIMED_OUT")
    assert answer.json["timings"]["remainingMs"] > 0


@pytest.mark.emulator
def test_a_job_above_the_functions_memory_is_killed_as_on_lambda(soal: Soal, client: S3Client) -> None:
    """The handler lives, and its answer names the cause and what to do; the machine's own memory is not used up."""
    uri = script(client, "eats", "held = []\nfor _ in range(64):\n    held.append(b'x' * (64 << 20))\n")
    answer = soal("local", "invoke", uri, "--json", "--memory-mb", "1536")
    assert (answer.code, answer.json["state"], answer.json["error"]["type"]) == (1, "FAILED", "OutOfMemory"), answer
    assert "more memory" in answer.json["stateDetails"]


@pytest.mark.emulator
def test_try_again_exits_75_and_variables_and_logs_arrive(soal: Soal, client: S3Client) -> None:
    """--env reaches the job; --logs shows its lines on stderr; exit code 75 is passed on."""
    uri = script(client, "again", "import os, sys\nprint('the variable is', os.environ['MINE'])\nsys.exit(75)\n")
    answer = soal("local", "invoke", uri, "--env", "MINE=a=b", "--logs")
    assert answer.code == 75
    assert "the variable is a=b" in answer.err


@pytest.mark.emulator
@pytest.mark.parametrize(
    ("event", "arguments", "said"),
    [
        ('{"entryPoint": "not a path"}', [], "entryPoint"),
        ('{"entryPoint": "s3://bucket/j.py", "unknown": 1}', [], "unknown"),
        ("{", [], "no JSON"),
        ("missing.json", [], "missing.json"),
        ("s3://b/j.py", ["--env", "X"], "NAME=VALUE"),
        ("s3://b/j.py", ["--timeout-s", "0"], "--timeout-s"),
        ("s3://b/j.py", ["--memory-mb", "1"], "--memory-mb"),
        ("s3://b/j.py", ["--endpoint-url", "nowhere"], "--endpoint-url"),
    ],
)
def test_a_wrong_call_exits_2_and_names_what_is_wrong(
    soal: Soal, endpoint: str, event: str, arguments: list[str], said: str
) -> None:
    """Whether the command line or the handler finds the mistake, the exit code is 2 and the message names it."""
    answer = soal("local", "invoke", event, *arguments)
    assert answer.code == 2
    assert said in answer.out + answer.err


@pytest.fixture(scope="module")
def given() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=["code", "state"], unlistable=["state"]) as running:
        yield running


@pytest.mark.emulator
def test_a_given_endpoint_is_used_with_the_callers_credentials(soal: Soal, given: EmbeddedS3) -> None:
    """Script, records and result are on the given store, under the caller's own key, without ListBucket."""
    given.observer().put_object(Bucket="code", Key="job.py", Body=b"print('hello')\n")
    answer = soal(
        *("local", "invoke", "s3://code/job.py", "--json", "--endpoint-url", given.endpoint),
        *("--env", "SW_CHECKPOINT_BUCKET=state/team"),
        AWS_ACCESS_KEY_ID="AKIAMINE",
        AWS_SECRET_ACCESS_KEY="mine",
        AWS_DEFAULT_REGION="eu-west-1",
    )
    assert (answer.code, answer.json["state"]) == (0, "SUCCESS"), answer
    assert answer.json["resultUri"].startswith("s3://state/team/results/")
    assert any(key.startswith("team/results/") for key in given.keys("state"))


def test_doctor_looks_at_the_running_s3(soal: Soal, endpoint: str) -> None:
    """In a tree that was set up no check fails, and the exit code says so."""
    answer = soal("doctor", "--json")
    findings = {finding["name"]: finding for finding in answer.json}
    assert answer.code == 0, findings
    assert findings["conditional writes"]["status"] == "ok"
    assert endpoint in findings["S3 endpoint"]["detail"]


def test_doctor_fails_where_set_up_has_not_run(soal: Soal, tmp_path_factory: pytest.TempPathFactory) -> None:
    """An empty home is exit code 1, with the remedy on stdout."""
    answer = soal("doctor", SOAL_HOME=str(tmp_path_factory.mktemp("empty")))
    assert answer.code == 1
    assert "scripts/setup" in answer.out


def test_data_goes_to_a_pipe_or_a_file(soal: Soal, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Both hold the same records, as many as requested."""
    piped = soal("local", "data", "-", "--rows", "30")
    path = tmp_path_factory.mktemp("data") / "a.csv"
    assert soal("local", "data", str(path), "--rows", "30").code == 0
    assert piped.out == path.read_text(encoding="utf-8")
    assert len(list(csv.reader(io.StringIO(piped.out, newline=""), delimiter=";"))) == 31
    assert soal("local", "data", "/no/such/folder/a.csv").code == 2
