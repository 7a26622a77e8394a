"""The real handler under the real emulator, with real Spark: the ends of jobs, and the answers."""

from __future__ import annotations

import io
import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import pytest
from jsonschema import Draft202012Validator

from handler.json_document import schema_text
from handler.outcome.result import Result, exit_status
from scripts.emulator.rie import LambdaEmulator
from soal.testing.s3 import EmbeddedS3
from tests.integration.handler.rie_scripts import (
    DELETES_ITS_PLACE,
    ESCAPES_AND_DIES,
    EXIT_3,
    FULL_HEAP,
    GUARDED,
    NO_NUMBER,
    RAISES,
    SECRET,
    SHOWS_ITS_EVENT,
    WAITS,
    WITH_A_WHEEL,
)
from tests.support.kept import of_jobs
from tests.support.waiting import BUSY_S, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import psutil

pytestmark = [pytest.mark.emulator, pytest.mark.spark]

CHECKPOINTS, SCRIPTS, LAKE = "checkpoints", "scripts", "lake"
WHEEL = "wheeled-1.0-py3-none-any.whl"


@pytest.fixture(scope="module")
def s3() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS, LAKE], unlistable=[CHECKPOINTS]) as server:
        client = server.observer()
        for name, text in (
            ("guarded.py", GUARDED),
            ("exit_3.py", EXIT_3),
            ("raises.py", RAISES),
            ("no_number.py", NO_NUMBER),
            ("deletes_its_place.py", DELETES_ITS_PLACE),
            ("full_heap.py", FULL_HEAP),
            ("escapes.py", ESCAPES_AND_DIES),
            ("event.py", SHOWS_ITS_EVENT),
            ("waits.py", WAITS),
            ("helper.py", "WORD = 'helped'"),
            ("wheel.py", WITH_A_WHEEL),
        ):
            client.put_object(Bucket=SCRIPTS, Key=name, Body=text.encode())
        wheel = io.BytesIO()
        with ZipFile(wheel, "w") as archive:
            archive.writestr("wheeled/__init__.py", "WORD = 'rolls'")
            archive.writestr("acme/cloud/thing.py", "WORD = 'far'")
            archive.writestr("sqlalchemy/__init__.py", "WORD = 'along'")
        client.put_object(Bucket=SCRIPTS, Key=WHEEL, Body=wheel.getvalue())
        yield server


class Function:
    def __init__(self, emulator: LambdaEmulator, s3: EmbeddedS3, lines: list[str]) -> None:
        self.emulator = emulator
        self.s3 = s3
        self.lines = lines

    def __call__(self, event: object) -> Result:
        """Invoke; the answer must be SoAL's, and no process of the job may be left except a waiting JVM."""
        before = self._jobs()
        answer = self.emulator.invoke(event)
        assert not answer.timed_out
        if answer.error is not None:
            assert answer.error.type == "JobFailed"
        document = answer.payload if answer.error is None else json.loads(answer.error.message)
        Draft202012Validator(json.loads(schema_text(Result))).validate(document)
        assert self._jobs() <= before
        result = Result.model_validate(document)
        if result.result_uri is not None:
            assert self._object(result.result_uri) == document
            assert self.record(result)["state"] == result.state
        return result

    def record(self, result: Result) -> dict[str, Any]:
        records = [self._object(f"s3://{CHECKPOINTS}/{key}") for key in self.s3.keys(CHECKPOINTS, "runs/")]
        return next(record for record in records if record["runId"] == result.run_id)

    def _object(self, uri: str) -> Any:
        body = self.s3.observer().get_object(Bucket=CHECKPOINTS, Key=uri.removeprefix(f"s3://{CHECKPOINTS}/"))["Body"]
        return json.loads(body.read())

    def _jobs(self) -> set[psutil.Process]:
        return of_jobs(self.emulator.processes())


def ignored(result: Result) -> list[str]:
    """The script's own settings that were ignored, by reason."""
    told = [re.match(r"the script sets (.+), which was ignored: .", warning) for warning in result.warnings]
    return [match[1] for match in told if match is not None]


@pytest.fixture(scope="module")
def function(s3: EmbeddedS3) -> Iterator[Function]:
    lines: list[str] = []
    environment = {
        **s3.environment(),
        "SOAL_JIT": "c1",
        "SW_CHECKPOINT_BUCKET": CHECKPOINTS,
        "SOAL_ENTRY_POINT": f"s3://{SCRIPTS}/event.py",
        "DB_PASSWORD": "open sesame",
    }
    with LambdaEmulator(environment, timeout_s=BUSY_S, memory_mb=1536, on_line=lines.append) as emulator:
        yield Function(emulator, s3, lines)


def test_a_guarded_job_with_a_function_of_its_own(function: Function) -> None:
    """Classes and functions of the script reach the Python workers; arguments, files and settings the script. Settings
    of its builder that have no effect here are ignored and reported, and none of them reaches Spark.
    """
    result = function(
        {
            "entryPoint": f"s3://{SCRIPTS}/guarded.py",
            "entryPointArguments": ["--day", "2026-11-20; echo $HOME"],
            "pyFiles": [f"s3://{SCRIPTS}/helper.py"],
            "conf": {"spark.sql.shuffle.partitions": "3"},
            "clientToken": "prices-1",
            "name": "prices",
        }
    )
    assert (result.state, result.exit_code, exit_status(result)) == ("SUCCESS", 0, 0), result.log_tail
    (write,) = result.writes
    assert (write.status, write.version, write.rows) == ("committed", 0, 1000)
    assert result.log_tail == (
        "argv ['--day', '2026-11-20; echo $HOME'] in /tmp/soal /tmp/soal",
        "local[1] 3 prices",
        "helped",
    )
    assert ignored(result) == [
        "spark.master",
        "spark.driver.memory",
        "spark.executor.memory",
        "spark.jars.packages",
        "spark.delta.logStore.s3a.impl",
        "spark.hadoop.fs.s3a.access.key, spark.hadoop.fs.s3a.secret.key",
        "spark.hadoop.fs.s3a.aws.credentials.provider",
        "spark.hadoop.fs.s3a.endpoint, fs.s3a.endpoint",
        "spark.sql.catalogImplementation",
    ]
    timings = result.timings
    assert None not in (timings.script_download_ms, timings.jvm_start_ms, timings.session_ms, timings.job_ms)
    assert result.memory.peak_mb is not None
    assert result.memory.peak_mb > 200
    assert (result.versions.spark, result.versions.delta) == ("4.1.4", "4.4.0")


def test_a_wheel_and_a_module_that_nobody_has(function: Function) -> None:
    """Driver and workers import from the wheel, also a package without `__init__` and one with a name that only the
    variant full has; one sentence reports the other module.
    """
    result = function({"script": f"s3://{SCRIPTS}/wheel.py", "pyFiles": [f"s3://{SCRIPTS}/{WHEEL}"]})
    assert result.log_tail[0] == "rolls far along ['rolls far along']"
    assert result.error is not None
    assert (result.error.type, result.error.usage) == ("NotInImage", True)
    assert result.state_details == (
        "the script imports not_anywhere, which neither the image nor the job's pyFiles have: name it in pyFiles if it"
        " is pure Python (.py, .zip, .egg, .whl), or derive an image with it (image/derived)"
        " (ModuleNotFoundError: No module named 'not_anywhere' (wheel.py, line 10))"
    )


def test_an_exit_code_and_a_secret(function: Function) -> None:
    """Exit code 3 is the script's, and its printed secret is masked in result and log."""
    result = function(f"s3://{SCRIPTS}/exit_3.py")
    assert (result.state, result.exit_code, result.signal, exit_status(result)) == ("FAILED", 3, None, 1)
    assert result.error is not None
    assert result.error.type == "ScriptExit"
    assert result.log_tail == ("secret [redacted]",)
    assert SECRET not in "\n".join(function.lines)


def test_an_exception(function: Function) -> None:
    """Its class and text are the error, and the traceback begins with the script."""
    result = function({"script": f"s3://{SCRIPTS}/raises.py"})
    assert result.error is not None
    assert (result.error.type, result.error.message) == ("ValueError", "ValueError: no such day (raises.py, line 2)")
    assert result.log_tail[0].startswith("Traceback")
    assert "raises.py" in result.log_tail[1]
    assert not any("bootstrap" in line for line in result.log_tail)


def test_a_script_that_deletes_its_own_directory_after_its_write(function: Function) -> None:
    """The write is in the table and on record; the lost local journal hides nothing."""
    result = function(f"s3://{SCRIPTS}/deletes_its_place.py")
    assert (result.state, result.exit_code) == ("SUCCESS", 0), result.state_details
    (write,) = result.writes
    assert (write.status, write.rows) == ("committed", 7)


def test_a_setting_that_spark_cannot_read(function: Function) -> None:
    """The job ends with Spark's own message; PySpark's conversion of such an exception would never end."""
    result = function(f"s3://{SCRIPTS}/no_number.py")
    assert result.error is not None
    assert (result.state, result.error.type) == ("FAILED", "IllegalArgumentException"), result.state_details
    assert "The value 'two' in the config \"spark.sql.shuffle.partitions\" is invalid" in result.error.message


def test_a_full_java_heap(function: Function) -> None:
    """The JVM exits, and the result gives the reason; a context of the script's own has the handler's master."""
    result = function(f"s3://{SCRIPTS}/full_heap.py")
    assert result.error is not None
    assert (result.state, result.error.type) == ("FAILED", "OutOfMemory"), result.log_tail
    assert "heap" in result.error.message
    assert ignored(result) == ["spark.master", "spark.ui.enabled"]


def test_a_driver_that_leaves_a_process_behind_and_dies(function: Function) -> None:
    """The JVM reports the signal instead of an exit code; the process in another session is killed."""
    result = function(f"s3://{SCRIPTS}/escapes.py")
    assert (result.state, result.exit_code, result.signal) == ("FAILED", None, 9)


def test_an_event_reaches_the_function_s_own_script(function: Function) -> None:
    """The event arrives as a file, and names the run."""
    event = {"detail-type": "Scheduled Event", "source": "aws.events", "id": "e-1", "detail": {"day": 1}}
    result = function(event)
    assert result.state == "SUCCESS", result.log_tail
    assert result.log_tail == ("event {'day': 1}",)
    assert function.record(result)["runKey"].startswith("eventbridge-e-1-")
    again = function(event)
    assert (again.attempt, again.previous_run_id) == (2, result.run_id)


def test_a_script_that_is_not_there(function: Function) -> None:
    """A usage error, on record, and no script of an earlier request runs in its place."""
    result = function({"script": f"s3://{SCRIPTS}/nowhere.py", "clientToken": "nowhere"})
    assert (result.state, exit_status(result)) == ("FAILED", 2)
    assert result.error is not None
    assert result.error.field == "entryPoint"
    assert result.timings.jvm_start_ms is None


def test_a_token_that_belongs_to_another_job(function: Function) -> None:
    """A usage error, since a skip would hide that this job has never run."""
    result = function({"script": f"s3://{SCRIPTS}/exit_3.py", "clientToken": "nowhere"})
    assert exit_status(result) == 2
    assert result.error is not None
    assert result.error.field == "clientToken"


def test_one_token_delivered_twice_at_once(function: Function, s3: EmbeddedS3, tmp_path: Path) -> None:
    """Of two functions, one runs, and the other says so and changes nothing; afterwards it may run."""
    event = {"script": f"s3://{SCRIPTS}/waits.py", "clientToken": "twice", "entryPointArguments": [str(tmp_path)]}
    other_environment = {**s3.environment(), "SOAL_JIT": "c1", "SW_CHECKPOINT_BUCKET": CHECKPOINTS}
    with (
        LambdaEmulator(other_environment, timeout_s=BUSY_S, memory_mb=1536) as emulator,
        ThreadPoolExecutor(1) as pool,
    ):
        first = pool.submit(function, event)
        assert until((tmp_path / "running").exists)
        other = Function(emulator, s3, [])
        second = other(event)
        assert (second.state, exit_status(second)) == ("FAILED", 75)
        assert second.error is not None
        assert (second.error.type, second.run_id) == ("AttemptRunningError", None)
        (tmp_path / "done").touch()
        assert first.result().state == "SUCCESS"
        third = other(event)
    assert (third.state, third.attempt, third.previous_run_id) == ("SUCCESS", 2, first.result().run_id)
