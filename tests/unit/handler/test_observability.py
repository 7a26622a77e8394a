"""The handler's log lines and CloudWatch metrics: run ids on each line, verdicts, the job's output, no secrets."""

from __future__ import annotations

import io
import json
import logging
import sys
from typing import TYPE_CHECKING, Any

import pytest

from handler import observability
from handler.outcome.assemble import result_of
from handler.outcome.state import Fault, Outcome, State
from handler.redaction.redact import Redactor
from handler.runs.record import RunRecord
from safewriter.deadline import Deadline, epoch_ms
from safewriter.record.document import Status
from safewriter.settle.supervisor import WriteReport
from tests.support.walks import new_walk, settled

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def no_metrics_left() -> Iterator[None]:
    yield
    observability.metrics.clear_metrics()


def test_a_result_becomes_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    """State and verdicts become counts, times milliseconds, this attempt's commits rows and bytes; values of stages not
    reached are absent.
    """
    monkeypatch.setattr("handler.outcome.assemble.epoch_ms", lambda: 2_000)
    progress = new_walk(Deadline(10_000, 1_000, lambda: 2_000), cold_start=True)
    progress.settled = settled(
        WriteReport("a", "delta", None, Status.COMMITTED, 1, 22_248, 99, None, None, "c"),
        WriteReport("a", "delta", None, Status.COMMITTED, 1, 7, 7, None, None, "c", run_id="an earlier attempt"),
        WriteReport("b", "delta", None, Status.UNKNOWN, None, None, None, None, None, "c"),
    )
    observability.count(result_of(progress, Outcome(State.UNKNOWN, "d", None)))
    blob: dict[str, Any] = dict(observability.metrics.serialize_metric_set())
    for name in ("ColdStart", "StateUnknown", "VerdictUnknown"):
        assert blob[name] == [1.0]
    assert (blob["VerdictCommitted"], blob["RowsCommitted"], blob["BytesCommitted"]) == ([2.0], [22248.0], [99.0])
    assert (blob["TotalMs"], blob["RemainingMs"]) == ([1000.0], [8000.0])
    assert "SparkStartMs" not in blob


@pytest.mark.parametrize(("usage", "counted"), [(True, 1), (False, 0)])
def test_a_usage_error_is_counted_by_the_version_at_the_invocation_s_beginning(
    usage: bool,  # noqa: FBT001 - a column of the table above
    counted: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A deployment's alarm subtracts it from the version's errors; other failures remain."""
    progress = new_walk(Deadline(10_000, 1_000, lambda: 2_000), cold_start=True)
    result = result_of(progress, Outcome(State.FAILED, "d", Fault("T", "m", usage=usage)))
    began_ms = epoch_ms() - 60_000
    observability.count_usage_error(result, version="7", began_ms=began_ms)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(told) == counted
    for blob in told:
        assert (blob["UsageErrors"], blob["version"], blob["service"]) == ([1.0], "7", "soal")
        assert blob["_aws"]["Timestamp"] == began_ms
        assert blob["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["service", "version"]]


def test_each_verdict_is_a_line_with_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    """The log can be searched by table; an uncommitted write is a warning."""
    progress = new_walk(Deadline(10_000, 1_000, lambda: 2_000), cold_start=True)
    progress.settled = settled(
        WriteReport("s3://a", "delta", "one", Status.COMMITTED, 7, 3, 1, None, None, "c"),
        WriteReport("s3://b", "delta", None, Status.ROLLED_BACK, None, None, None, "deadline", None, "c"),
    )
    observability.logger.handlers[0].stream = sys.stdout  # type: ignore[attr-defined]  # pytest has put its own there
    observability.count(result_of(progress, Outcome(State.FAILED, "d", None)))
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (first["table"], first["status"], first["step"], first["version"], first["rows"], first["level"]) == (
        "s3://a",
        "committed",
        "one",
        7,
        3,
        "INFO",
    )
    assert (second["table"], second["message"], second["level"]) == ("s3://b", "rolled_back: deadline", "WARNING")


@pytest.mark.parametrize(
    ("line", "level"),
    [("ERROR Executor: x", "ERROR"), ("WARN Utils: x", "WARNING"), ("WARNING", "INFO"), ("100", "INFO")],
)
def test_a_line_of_the_job_is_a_record(line: str, level: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The message is the text, whatever it looks like."""
    observability.logger.handlers[0].stream = sys.stdout  # type: ignore[attr-defined]  # pytest has put its own there
    observability.log_job_line(line)
    record = json.loads(capsys.readouterr().out)
    assert (record["message"], record["level"], record["source"]) == (line, level, "job")


def test_a_metric_of_the_job_is_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """CloudWatch reads a metric only from a bare line."""
    observability.print_metric('{"_aws":{}}')
    assert capsys.readouterr().out == '{"_aws":{}}\n'


def test_every_line_says_to_which_run_it_belongs(capsys: pytest.CaptureFixture[str]) -> None:
    """This includes the job's own lines, so that a run can be followed through the function's log."""
    record = RunRecord(
        run_key="nightly",
        fingerprint="f",
        name=None,
        entry_point="s3://b/job.py",
        attempt=2,
        run_id="r",
        previous_run_id="q",
        request_id="request",
        state="RUNNING",
        started_ms=1,
        deadline_ms=2,
        result_uri="s3://b/r",
    )
    observability.logger.handlers[0].stream = sys.stdout  # type: ignore[attr-defined]  # as above
    try:
        observability.name_run(record, lambda key: key.replace("night", "dai"))
        observability.log_job_line("a row")
    finally:
        observability.logger.remove_keys(["run_key", "run_id", "attempt"])
    line = json.loads(capsys.readouterr().out)
    assert {name: line[name] for name in ("run_key", "run_id", "attempt", "source", "message")} == {
        "run_key": "daily",
        "run_id": "r",
        "attempt": 2,
        "source": "job",
        "message": "a row",
    }


def test_a_line_of_the_job_says_which_table_is_being_written(capsys: pytest.CaptureFixture[str]) -> None:
    """Outside a block there is none."""
    observability.logger.handlers[0].stream = sys.stdout  # type: ignore[attr-defined]  # as above
    observability.log_job_line("inside", ("s3://a", "s3://b"))
    observability.log_job_line("outside")
    inside, outside = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert inside["table"] == "s3://a, s3://b"
    assert "table" not in outside


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """Yield the output of a root handler like the one that Lambda's runtime adds before the function's modules."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield stream
    finally:
        root.removeHandler(handler)
        observability.mask_lines(lambda text: text)


@pytest.mark.parametrize("name", ["safewriter.settle.recovery", "botocore", "soal.other"])
def test_no_module_of_the_process_logs_a_secret_of_the_run(logged: io.StringIO, name: str) -> None:
    """SafeWriter and libraries know no secrets: a table's path, an error or a field of a record may hold one."""
    redactor = Redactor().knowing(["--password", "hunter22hunter22"])
    observability.mask_lines(redactor)
    log = logging.getLogger(name)
    path = "s3a://lake/hunter22hunter22/t"
    log.warning("%s: undone", path)
    log.warning({"table": path})
    log.error("a write of %s", path, exc_info=OSError(path), stack_info=True)
    log.error("%d", path)
    log.warning("\ud800 of %s", path)
    text = logged.getvalue()
    assert "hunter22" not in text
    assert text.splitlines()[:2] == ["s3a://lake/[redacted]/t: undone", "{'table': 's3a://lake/[redacted]/t'}"]
    assert "OSError: s3a://lake/[redacted]/t" in text
    assert "could not be searched for secrets" in text


@pytest.mark.usefixtures("logged")
def test_the_function_s_own_lines_and_their_fields_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of the job are already masked."""
    stream = io.StringIO()
    (handler,) = observability.logger.handlers
    monkeypatch.setattr(handler, "stream", stream)
    observability.mask_lines(Redactor().knowing(["--password", "hunter22hunter22"]))
    secret = "hunter22hunter22"
    observability.logger.warning(f"of {secret}", table=f"s3a://lake/{secret}/t", names=[secret])
    observability.log_job_line("a line of hunter22hunter22")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert first["names"] == "['[redacted]']"
    assert (first["message"], first["table"]) == ("of [redacted]", "s3a://lake/[redacted]/t")
    assert second["message"] == "a line of hunter22hunter22"


def test_a_line_that_could_not_be_searched_shows_no_field(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its fields were not searched either."""
    stream = io.StringIO()
    (handler,) = observability.logger.handlers
    monkeypatch.setattr(handler, "stream", stream)
    observability.mask_lines(Redactor().knowing(["--password", "hunter22hunter22"]))
    observability.logger.warning("%d rows", "three", extra={"table": "hunter22hunter22"})
    assert "could not be searched" in stream.getvalue()
    assert "hunter22" not in stream.getvalue()
