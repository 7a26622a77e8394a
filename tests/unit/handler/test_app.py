"""The Lambda function from event to answer, without Spark: states, verdicts, records, masked secrets, warnings."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from handler import observability
from handler.app import handle, lambda_handler
from handler.credentials import credentials_for_java
from handler.input_errors import InputError
from handler.outcome.delivery import JobFailed, deliver
from handler.outcome.result import exit_status
from handler.process.child import Stop
from handler.runs.event_logs import prefix_of
from handler.secrets import Secrets, SecretUnavailableError
from safewriter import entropy
from safewriter.objects import StoreError
from safewriter.record.document import Status
from tests.unit.handler.world import COMMITTED, EVENT, REFERENCES, UNKNOWN, World

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from handler.outcome.result import Result
    from handler.stages.progress import Progress
    from safewriter.record.journal import Event


@dataclass(frozen=True)
class Context:
    """What Lambda passes beside an event."""

    aws_request_id: str
    memory_limit_in_mb = "3008"
    function_name = invoked_function_arn = function_version = "f"

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_success(world: World) -> None:
    """The document is complete, S3 has the returned one, and the run's record agrees."""
    result = world.handle()
    assert (result.state, result.attempt, result.name, exit_status(result)) == ("SUCCESS", 1, "nightly", 0)
    assert result.result_uri == "s3://memory/results/run-1/run_result.json"
    assert world.stored("results/") == [result.document()]
    (record,) = world.stored("runs/")
    assert (record["state"], record["runKey"]) == ("SUCCESS", "t")


def test_the_record_says_why_the_attempt_ended_so(world: World) -> None:
    """The record has the result's message without secrets, for people who only have the run key."""
    world.end = {"exit_code": 7, "signal": None, "stop": None}
    result = world.handle()
    (record,) = world.stored("runs/")
    assert record["reason"] == result.state_details
    assert "exit code 7" in record["reason"]


def test_unknown_is_never_success(world: World) -> None:
    """No exit code changes that."""
    world.reports = (UNKNOWN,)
    assert world.handle().state == "UNKNOWN"
    world.reports = StoreError("gone")
    result = world.handle()
    assert result.state == "UNKNOWN"
    assert "gone" in result.state_details


def test_a_secret_of_the_function_s_variables_is_masked_also_before_the_job_is_known(world: World) -> None:
    """An event may be refused before any other secret is known."""
    result = world.handle({"entryPoint": "s3://scripts/hunter22.txt"}, DB_PASSWORD="hunter22")
    assert result.error is not None
    assert "hunter22" not in result.model_dump_json()


def test_the_deadline(world: World) -> None:
    """Committed writes can be continued."""
    world.end = {"exit_code": None, "signal": 9, "stop": Stop.KILLED}
    result = world.handle()
    assert (result.state, exit_status(result)) == ("INCOMPLETE", 124)
    assert "clientToken 't'" in result.state_details
    assert not result.progressed  # another attempt has committed it


def test_the_event_log_of_a_killed_job_is_kept_without_secrets(world: World) -> None:
    """The handler lives on after the kill; the name says that Spark has not ended the log."""
    world.end = {"exit_code": None, "signal": 9, "stop": Stop.KILLED}
    world.event_log = b'{"Event":"SQL","plan":"Filter (x = hunter22)"}\n{"Event":"Sta'
    result = world.handle(SOAL_EVENT_LOGS="on")
    (key,) = (listed.key for listed in world.store.list("eventlogs/"))
    assert key == f"{prefix_of('t')}000001-run-1-1.inprogress"
    assert world.stored("eventlogs/") == [{"Event": "SQL", "plan": "Filter (x = [redacted])"}]
    assert (result.state, result.warnings) == ("INCOMPLETE", ())


def test_an_overdue_copy_of_the_event_logs_leaves_no_jvm_to_the_next_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy may hold much of the function's memory for longer."""
    places: list[Any] = []

    def overdue(*_: object, when_overdue: Any, **__: object) -> tuple[str, ...]:
        place = when_overdue.__self__
        place.keep(SimpleNamespace(end=lambda: places.append(place)))
        when_overdue()
        return ()

    monkeypatch.setattr("handler.stages.run.keep", overdue)
    world.handle(SOAL_EVENT_LOGS="on")
    (place,) = places
    assert not place.keeps


def test_a_run_that_is_allowed_to_goes_on_by_itself(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The function is invoked again with the same event and key after the run's record is closed."""
    world.end = {"exit_code": None, "signal": 9, "stop": Stop.KILLED}
    world.reports = (replace(COMMITTED, run_id="run-1"),)
    invoke = world.invoke
    states: list[str] = []

    def look(*given: Any) -> Any:
        states.extend(one["state"] for one in world.stored("runs/"))
        return invoke(*given)

    monkeypatch.setattr(world, "invoke", look)
    result = world.handle(SOAL_CONTINUE_MAX="5")
    assert states == ["INCOMPLETE"]  # otherwise the next attempt would wait for this one
    assert (result.state, result.resume_token, result.continued_by) == ("INCOMPLETE", "t", "request-2")
    assert result.progressed
    assert isinstance(world.invoked, list)
    ((function, event),) = world.invoked
    assert (function, event) == ("arn:f", {"continuation": {"count": 1, "token": "t", "event": EVENT}})
    assert deliver(result, None) == result.document()
    again = world.handle(event, SOAL_CONTINUE_MAX="5")
    assert (again.attempt, again.client_token) == (2, "t")
    assert world.invoked[-1][1]["continuation"]["count"] == 2


def test_a_run_that_cannot_go_on_by_itself_says_so(world: World) -> None:
    """It stays INCOMPLETE, is raised, and can be continued by hand."""
    world.end = {"exit_code": None, "signal": 9, "stop": Stop.KILLED}
    world.reports = (replace(COMMITTED, run_id="run-1"),)
    world.invoked = RuntimeError("AccessDenied")
    result = world.handle(SOAL_CONTINUE_MAX="5")
    assert result.continued_by is None
    assert any("AccessDenied" in warning for warning in result.warnings)
    with pytest.raises(JobFailed):
        deliver(result, None)


def test_a_fault_of_ours_while_the_job_runs(world: World) -> None:
    """The job's writes are still settled, and the answer names the error."""
    world.fails = RuntimeError("password=hunter22")
    result = world.handle()
    assert world.settled == 1
    assert result.error is not None
    assert (result.state, result.error.type) == ("FAILED", "InternalError")
    assert [write.status for write in result.writes] == ["committed"]
    assert "hunter22" not in result.model_dump_json()
    world.reports = StoreError("gone")
    assert world.handle().state == "UNKNOWN"


def test_a_store_that_fails_at_the_end_is_a_warning(world: World) -> None:
    """The answer is unchanged otherwise."""

    def refuse(*_: object, **__: object) -> str:
        raise StoreError("slow down")

    world.store.put = refuse  # type: ignore[method-assign]
    world.store.replace = refuse  # type: ignore[method-assign]
    result = world.handle()
    assert result.state == "SUCCESS"
    assert [warning.partition(":")[0] for warning in result.warnings[:2]] == [
        "this document is not at resultUri",
        "the run's record still says RUNNING",
    ]


@pytest.mark.parametrize("py_files", [[], ["s3://library/common.py"]])
def test_java_starts_beside_the_first_steps_and_the_script_after_them(world: World, py_files: list[str]) -> None:
    """Spark needs Python files when it starts, so they are fetched first."""
    assert world.handle({**EVENT, "pyFiles": py_files}).state == "SUCCESS"
    assert world.began_without_record == (not py_files)
    assert world.may_run


def test_a_store_that_fails_at_the_beginning_runs_no_script(world: World) -> None:
    """It may be retried."""

    def refuse(*_: object, **__: object) -> str:
        raise StoreError("slow down")

    world.store.create = refuse  # type: ignore[method-assign]
    result = world.handle()
    assert not world.may_run
    assert world.settled == 0
    assert exit_status(result) == 75


def test_the_token_for_the_role_s_credentials_is_masked(world: World) -> None:
    """The JVM has it in its environment, which a job may print."""
    token = credentials_for_java()["AWS_CONTAINER_AUTHORIZATION_TOKEN"]
    world.prints = f"found {token}\n".encode()
    assert world.handle().log_tail == ("found [redacted]",)


def test_a_job_whose_arguments_cannot_be_searched_for_secrets_does_not_start(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log could show a part of one, by which nobody knows it."""
    monkeypatch.setattr("handler.redaction.redact._KNOWING_MAX_S", 0.0)
    result = world.handle()
    assert result.error is not None
    assert (result.error.field, result.error.usage, world.command) == ("entryPointArguments", True, None)
    assert "take too long to be searched" in result.error.message


def test_arguments_that_are_secret_are_masked_in_what_the_job_prints(world: World) -> None:
    """The job itself receives them unmasked."""
    world.prints = b"connecting with hunter22\n"
    result = world.handle()
    assert world.command is not None
    assert world.command.submission[-1] == "hunter22"
    assert result.log_tail == ("connecting with [redacted]",)


@pytest.mark.parametrize("depth", [101, 5_000])
@pytest.mark.parametrize("form", [lambda deep: deep, lambda deep: {"script": "s3://a/b.py", "conf": deep}])
def test_an_event_that_is_nested_too_deeply_is_a_usage_error(world: World, form: Any, depth: int) -> None:
    """Lambda has parsed it, but Python could neither show nor serialise it."""
    deep: dict[str, Any] = {}
    for _ in range(depth):
        deep = {"a": deep}
    result = world.handle(form(deep), SOAL_ENTRY_POINT="s3://scripts/job.py")
    assert result.error is not None
    assert (result.error.type, result.error.field) == ("UsageError", "event")


def test_a_job_that_may_have_written_more_than_is_known_is_unknown(world: World) -> None:
    """The known verdicts are returned beside it."""
    world.journal_doubt = "the journal was truncated"
    result = world.handle()
    assert (result.state, [write.status for write in result.writes]) == ("UNKNOWN", ["committed"])
    assert "other writes" in result.state_details


@pytest.mark.slow
def test_a_flood_is_remarked(world: World) -> None:
    """Readers must know that the log is incomplete."""
    world.prints = b"x" * 8000 + b"\n"
    world.prints *= 2200
    assert any("were not logged" in warning for warning in world.handle().warnings)


def test_output_that_was_not_read_to_its_end_is_a_warning(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has counted the lines that are missing."""
    assert world.handle().warnings == ()
    monkeypatch.setattr("handler.process.log.JobLog.pump", lambda *_: None)
    world.request_id = "another"
    (warning,) = world.handle({**EVENT, "clientToken": "u"}).warnings
    assert warning.startswith("the job's output could not be read to its end")


@pytest.mark.parametrize(
    ("event", "remark"),
    [
        ("block_left", "an earlier attempt had committed"),
        ("block_outlived", "a statement of another thread still ran"),
    ],
)
def test_a_block_that_may_lack_rows_is_remarked(world: World, event: Event, remark: str) -> None:
    """The block ended at its statement, or a statement outlived it."""
    world.told = [(event, {"table": "s3a://lake/t", "nonce": "n"})]
    result = world.handle()
    assert result.state == "SUCCESS"
    assert any(f"s3a://lake/t: {remark}" in warning for warning in result.warnings)


@pytest.mark.parametrize(
    ("bucket", "field", "counted"),
    [("checkpoints", "entryPoint", [([1.0], "f")]), ("", "SW_CHECKPOINT_BUCKET", [])],
    ids=["event", "variable"],
)
def test_the_function_raises_what_is_not_a_success(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    bucket: str,
    field: str,
    counted: list[object],
) -> None:
    """The error's message is the document. A usage error is counted by the version that raised it, so that it rolls no
    deployment back; a wrong variable is not a caller's mistake, and does.
    """
    monkeypatch.setenv("SW_CHECKPOINT_BUCKET", bucket)
    with pytest.raises(JobFailed) as caught:
        lambda_handler({}, cast("Any", Context("r")))
    assert json.loads(str(caught.value))["error"]["field"] == field
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"UsageErrors"' in line]
    assert [(blob["UsageErrors"], blob["version"]) for blob in told] == counted


def test_two_copies_of_one_sandbox_draw_different_run_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """A restored snapshot has the random bytes of its copies; the id of its event is its own."""
    monkeypatch.setattr("os.urandom", bytes)
    monkeypatch.setattr("safewriter.entropy.time.time_ns", lambda: 0)
    run_ids: list[str] = []

    def record(event: object, progress: Progress, environment: Mapping[str, str]) -> Result:
        run_ids.append(progress.invocation.run_id)
        return handle(event, progress, environment)

    monkeypatch.setattr("handler.app.handle", record)
    for request_id in ("request-1", "request-2", "request-2"):
        monkeypatch.setattr("safewriter.entropy._POOL", entropy._Pool())
        with pytest.raises(JobFailed):
            lambda_handler({}, cast("Any", Context(request_id)))
    assert run_ids[0] != run_ids[1] == run_ids[2]


def test_secrets_reach_the_job_and_nothing_else(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """They become variables and properties; the result, the log tail and the stored document do not have them."""
    monkeypatch.setenv("PGPASSWORD", "of before")  # restored at the end
    values = {"PGPASSWORD": "pw#1", "API_PASS": "caf\u00e9 1/2", "spark.sql.catalog.lake.credential": "id:open sesame"}
    world.secrets = Secrets(values)
    world.prints = b"url postgres://x/caf%C3%A9%201%2F2 and id:open sesame\npw#1\n"
    world.reports = (replace(COMMITTED, status=Status.UNKNOWN, reason="no answer with pw#1"),)

    result = world.handle({**EVENT, "conf": {"spark.sql.shuffle.partitions": "2"}}, SOAL_SECRETS=json.dumps(REFERENCES))

    assert world.command is not None
    assert world.command.variables["PGPASSWORD"] == "pw#1"
    assert world.command.variables["API_PASS"] == values["API_PASS"]
    assert not {"SOAL_SECRETS", *values} & set(world.command.environment)
    assert "SOAL_SECRETS" not in world.command.variables
    assert "spark.sql.catalog.lake.credential=id\\:open\\ sesame\n" in world.properties
    assert os.environ["PGPASSWORD"] == "pw#1"  # this process settles the job's writes
    assert "API_PASS" not in os.environ
    shown = json.dumps([result.document(), world.stored("results/"), world.stored("runs/")], ensure_ascii=False)
    assert result.state == "UNKNOWN"
    assert len(result.log_tail) == 2
    for secret in (*values.values(), "%C3%A9"):
        assert secret not in shown


@pytest.mark.parametrize(
    ("error", "retryable"),
    [(SecretUnavailableError("the secret X: no answer"), True), (InputError("SOAL_SECRETS", "the secret X"), False)],
)
def test_a_secret_that_cannot_be_read_starts_nothing(world: World, error: Exception, *, retryable: bool) -> None:
    """The answer says whether the same invocation may succeed later; there is no child and no record."""
    world.secrets = error

    result = world.handle(SOAL_SECRETS=json.dumps(REFERENCES))

    assert (result.state, world.command, world.stored("runs/")) == ("FAILED", None, [])
    assert result.error is not None
    assert (result.error.retryable, result.error.usage) == (retryable, not retryable)
    assert "the secret X" in result.state_details


LONE = "\ud800"
"""Half of a surrogate pair: JSON and Python can hold it, UTF-8 cannot."""


@pytest.mark.parametrize(
    ("told", "report"),
    [
        (
            (
                ("python_exited", {"exitCode": 1}),
                ("uncaught", {"type": f"E{LONE}", "message": f"no such customer: {LONE}", "exitCode": 1}),
            ),
            COMMITTED,
        ),
        ((("setting_ignored", {"why": f"w{LONE}", "key": f"k{LONE}"}),), COMMITTED),
        ((("block_left", {"table": f"t{LONE}"}),), COMMITTED),
        ((("not_made", {"table": f"t{LONE}", "type": "T", "reason": "r"}),), COMMITTED),
        ((), replace(COMMITTED, table=f"s3://lake/{LONE}", step=LONE, checkpoint=f"s3://c/{LONE}")),
        ((), replace(COMMITTED, reason=LONE, undo_refused=LONE, incomplete=LONE, run_id=LONE)),
    ],
    ids=["error", "setting", "block", "guard", "table", "reason"],
)
def test_half_of_a_surrogate_pair_is_told_by_its_number(world: World, told: Any, report: Any) -> None:
    """The result exists, on S3 too, and the record is closed: otherwise the run would look killed."""
    world.told, world.reports = list(told), (report,)
    world.end["exit_code"] = int("uncaught" in str(told))
    result = world.handle()
    json.dumps(result.document(), ensure_ascii=False).encode()
    (document,), (record,) = world.stored("results/"), world.stored("runs/")
    assert document == result.document()
    assert record["state"] == result.state
    assert "\\ud800" in json.dumps(document, ensure_ascii=False)


def test_no_text_leaves_with_a_secret_whoever_wrote_it(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Scripts write tables, steps, names and types of errors. A run key and object locations stay, since they are used
    to find the run and the objects.
    """
    secret = "hunter22-Zq81xx"
    world.reports = (
        replace(COMMITTED, table=f"s3://lake/{secret}", step=secret, reason=secret, undo_refused=secret, run_id=secret),
    )
    opened = {"table": secret, "step": None, "writeKey": "k", "nonce": "n", "format": "delta", "checkpoint": "c"}
    error = {"type": secret, "message": secret, "exitCode": 1}
    world.told = cast("Any", [("write_opened", opened), ("python_exited", {"exitCode": 1}), ("uncaught", error)])
    world.prints, world.end["exit_code"] = b"a line\n", 1
    handlers = observability.logger.handlers
    handlers[0].stream = sys.stdout  # type: ignore[attr-defined]
    try:
        result = world.handle({**EVENT, "clientToken": secret, "name": secret}, DB_PASSWORD=secret)
        observability.count(result)
    finally:
        observability.metrics.clear_metrics()
        observability.logger.remove_keys(["run_key", "run_id", "attempt"])
    (record,) = world.stored("runs/")
    assert result.client_token == record["runKey"] == secret
    kept = {**result.document(), "clientToken": None}, {**record, "runKey": None}
    lines = capsys.readouterr().out
    for shown in (*map(str, kept), lines):
        assert "[redacted]" in shown
        assert secret not in shown
    assert '"table":"[redacted]"' in next(line for line in lines.splitlines() if "a line" in line)
