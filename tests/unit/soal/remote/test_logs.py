"""`soal logs` on moto's CloudWatch Logs and Lambda."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws
from typer.testing import CliRunner

from safewriter.deadline import epoch_ms
from soal.commands.logs import LogReader
from soal.console.problem import Problem
from tests.support.command_line import app

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUP = "/soal/jobs"


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    with mock_aws():
        found: Any = boto3.client("logs")
        found.create_log_group(logGroupName=GROUP)
        found.create_log_stream(logGroupName=GROUP, logStreamName="one")
        yield found


def log(client: Any, *messages: object, ago_ms: int = 0) -> None:
    events = [
        {"timestamp": epoch_ms() - ago_ms, "message": one if isinstance(one, str) else json.dumps(one)}
        for one in messages
    ]
    client.put_log_events(logGroupName=GROUP, logStreamName="one", logEvents=events)


def powertools(text: str, **more: object) -> dict[str, object]:
    return {"level": "INFO", "message": text, "service": "soal", **more}


def test_lines_come_once_each_with_what_the_logger_has_said(client: Any) -> None:
    """Each line comes once; JSON lines are parsed, Lambda's own lines are unchanged."""
    log(client, powertools("begins"), powertools("a row", source="job"), "REPORT RequestId: 1\n")
    reader = LogReader(client, GROUP, 0)
    assert [(one.level, one.source, one.text) for one in reader.look()] == [
        ("INFO", "", "begins"),
        ("INFO", "job", "a row"),
        ("", "", "REPORT RequestId: 1"),
    ]
    assert list(reader.look()) == []
    log(client, powertools("late"), ago_ms=3_000)
    assert [one.text for one in reader.look()] == ["late"]


def test_events_without_an_id_come_once_each(client: Any) -> None:
    """Events without an ID, which CloudWatch's reference allows, come once each."""
    log(client, powertools("begins"), powertools("ends"))

    def without(parsed: dict[str, Any], **_: object) -> None:
        for event in parsed["events"]:
            del event["eventId"]

    client.meta.events.register("after-call.cloudwatch-logs.FilterLogEvents", without)
    reader = LogReader(client, GROUP, 0)
    assert [one.text for one in reader.look()] == ["begins", "ends"]
    assert list(reader.look()) == []


def test_the_lines_of_one_run_are_found_by_its_key(client: Any) -> None:
    """The lines of one run are found by its key, in the log group of the function's configuration."""
    log(client, powertools("mine", run_key="nightly"), powertools("other", run_key="hourly"))
    done = CliRunner().invoke(app, ["logs", "nightly", "--log-group", GROUP, "--json"])
    assert done.exit_code == 0, done.output
    assert [json.loads(line)["text"] for line in done.stdout.splitlines()] == ["mine"]


def test_a_person_reads_time_level_and_text(client: Any) -> None:
    """Each JSON record becomes one line with time, level and text."""
    log(client, powertools("begins"), powertools("fails", level="ERROR"))
    done = CliRunner().invoke(app, ["logs", "--log-group", GROUP])
    assert [line.split(maxsplit=1)[1] for line in done.stdout.splitlines()] == ["INFO  begins", "ERROR fails"]


def test_nothing_is_said_to_be_nothing(client: Any) -> None:
    """Without lines a remark names the period."""
    log(client, powertools("old"), ago_ms=7_200_000)
    done = CliRunner().invoke(app, ["logs", "--log-group", GROUP])
    assert done.stdout == ""
    assert "no line in the last 60 minutes" in done.stderr


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("arguments", [[], ["--log-group", "/nobody"], ["--function", "nobody"]])
def test_a_log_that_is_not_there_says_what_to_name(arguments: list[str]) -> None:
    """A missing or wrong log name is a problem, not a traceback of boto3."""
    assert isinstance(CliRunner().invoke(app, ["logs", *arguments]).exception, Problem)


def test_a_line_that_the_job_has_printed_is_shown_as_the_job_s(client: Any) -> None:
    """A line of the job is shown as the job's, even a metric that claims to be a verdict."""
    metric = {"_aws": {}, "level": "WARNING", "message": "rolled_back: no commit", "source": "job"}
    log(client, powertools("a row", source="job"), metric, powertools("rolled_back: it is so"))
    done = CliRunner().invoke(app, ["logs", "--log-group", GROUP])
    first, second, third = (line.split(maxsplit=1)[1] for line in done.stdout.splitlines())
    assert (first, third) == ("INFO  job: a row", "INFO  rolled_back: it is so")
    assert second.startswith("job: {")
