"""`soal graduate` hands an event's job to EMR Serverless as the same run, and a dry run starts nothing."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws
from typer.testing import CliRunner

from handler.request.job import requested
from handler.settings import read_settings
from soal.commands.graduate import job_run
from soal.console.problem import Problem
from tests.support.command_line import app

if TYPE_CHECKING:
    from collections.abc import Iterator

ROLE = "arn:aws:iam::123456789012:role/job"
EVENT = {
    "entryPoint": "s3://scripts/job.py",
    "entryPointArguments": ["s3://lake/it's", "--day", "2026-11-20"],
    "sparkSubmitParameters": "--conf spark.sql.shuffle.partitions=8 --py-files s3://scripts/own.zip",
    "clientToken": "nightly-2026-11-20",
    "name": "nightly",
    "tags": {"team": "data"},
}


def mapped(event: object = EVENT, **more: Any) -> dict[str, Any]:
    return job_run(event, "app", ROLE, "checkpoints", **more)


def options(request: dict[str, Any]) -> list[tuple[str, str]]:
    words = shlex.split(request["jobDriver"]["sparkSubmit"]["sparkSubmitParameters"])
    return list(zip(words[::2], words[1::2], strict=True))


def test_the_fields_go_where_they_have_the_same_names() -> None:
    """Script, arguments, token, name and tags come from the event."""
    request = mapped()
    driver = request["jobDriver"]["sparkSubmit"]
    assert (driver["entryPoint"], driver["entryPointArguments"]) == (EVENT["entryPoint"], EVENT["entryPointArguments"])
    assert {name: request[name] for name in ("clientToken", "name", "tags")} == {
        name: EVENT[name] for name in ("clientToken", "name", "tags")
    }
    assert (request["applicationId"], request["executionRoleArn"]) == ("app", ROLE)


def test_the_run_is_the_same_there() -> None:
    """The job gets run key and fingerprint, to skip committed writes, and the log store, to be guarded."""
    confs = dict(value.split("=", 1) for option, value in options(mapped()) if option == "--conf")
    settings = read_settings({"SW_CHECKPOINT_BUCKET": "checkpoints"})
    job = requested(EVENT, settings, "request").job
    assert confs["spark.emr-serverless.driverEnv.SOAL_RUN_KEY"] == job.run_key
    assert confs["spark.emr-serverless.driverEnv.SOAL_JOB_FINGERPRINT"] == job.fingerprint
    assert confs["spark.emr-serverless.driverEnv.SW_CHECKPOINT_BUCKET"] == "checkpoints"
    for scheme in ("s3", "s3a", "s3n"):  # EMR reaches the same tables by each of them
        assert confs[f"spark.delta.logStore.{scheme}.impl"] == "io.soal.logstore.ConditionalS3LogStore"
    assert confs["spark.sql.shuffle.partitions"] == "8"
    assert not any(key.startswith("spark.driver.") for key in confs)


def test_a_token_with_a_time_is_a_token_of_emr_too() -> None:
    """Its own has no colons; the run's key stays as it is."""
    request = mapped({**EVENT, "clientToken": "nightly-2026-11-20T02:00:00Z"})
    assert request["clientToken"] == "nightly-2026-11-20T02-00-00Z"
    assert ("--conf", "spark.emr-serverless.driverEnv.SOAL_RUN_KEY=nightly-2026-11-20T02:00:00Z") in options(request)


def test_files_of_the_event_and_of_the_call_are_put_together() -> None:
    """The files of the event and the options are combined; the options replace what the image has on Lambda."""
    found = dict(options(mapped(py_files=["s3://code/soal.zip"], jars=["s3://code/soal-logstore.jar"])))
    assert found["--py-files"] == "s3://scripts/own.zip,s3://code/soal.zip"
    assert found["--jars"] == "s3://code/soal-logstore.jar"


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({**EVENT, "entryPoint": "job.py"}, "entryPoint"),
        ({"entryPoint": "s3://scripts/job.py"}, "clientToken"),
        ({"detail": "of an event bus"}, "SOAL_ENTRY_POINT"),
    ],
)
def test_what_the_function_would_refuse_is_refused_here(event: object, said: str) -> None:
    """The command refuses what the function would, with the same message, and an event without a run key."""
    with pytest.raises(Problem, match=said):
        mapped(event)


@pytest.fixture
def application(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    with mock_aws():
        client: Any = boto3.client("emr-serverless")
        made = client.create_application(name="a", releaseLabel="emr-7.0.0", type="SPARK")
        yield made["applicationId"]


def call(application: str, *more: str) -> Any:
    arguments = ["--application-id", application, "--execution-role-arn", ROLE, "--checkpoint-bucket", "checkpoints"]
    return CliRunner().invoke(app, ["graduate", json.dumps(EVENT), *arguments, "--json", *more])


def test_a_job_is_started_with_what_a_dry_run_shows(application: str) -> None:
    """The dry run starts nothing."""
    client: Any = boto3.client("emr-serverless")
    shown = json.loads(call(application, "--dry-run").stdout)
    done = call(application)
    assert done.exit_code == 0, done.output
    started = client.get_job_run(applicationId=application, jobRunId=json.loads(done.stdout)["jobRunId"])["jobRun"]
    assert started["jobDriver"] == shown["jobDriver"]
    assert started["executionRole"] == ROLE
    assert len(client.list_job_runs(applicationId=application)["jobRuns"]) == 1


@pytest.mark.usefixtures("application")
def test_an_application_that_does_not_exist_is_said() -> None:
    """A missing application is a problem that names it, not a traceback."""
    done = call("nobody")
    assert isinstance(done.exception, Problem)
    assert "nobody" in str(done.exception)
