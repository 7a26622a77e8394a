"""`soal runs …` on the tests' S3 lists, shows, watches and cancels runs, those of a living handler too."""

from __future__ import annotations

import json
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from handler.process.child import Shutdown, Stop, start
from handler.process.log import JobLog
from handler.redaction.redact import Redactor
from handler.request.job import requested
from handler.runs.run_supervisor import RunSupervisor
from handler.runs.store import Runs
from handler.settings import read_settings
from handler.spark.command import Command
from safewriter.deadline import Deadline, epoch_ms
from safewriter.objects.s3 import S3ObjectStore
from safewriter.record.journal import Journal
from safewriter.schedule import Schedule
from safewriter.settings import Settings
from safewriter.settle.supervisor import Supervision
from soal.console.problem import Problem
from soal.testing.s3 import Match, Refuse, Rule
from tests.support.command_line import app
from tests.support.lake import CHECKPOINTS
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from pathlib import Path

    from soal.testing.s3 import EmbeddedS3

BUCKET = "soal-runs"
SETTINGS = read_settings({"SW_CHECKPOINT_BUCKET": BUCKET})


class Bench:
    """A checkpoint bucket of its own on the tests' S3, and `soal runs …` on it."""

    def __init__(self, s3: EmbeddedS3, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        for variable, value in s3.environment().items():
            monkeypatch.setenv(variable, value)
        self.endpoint = s3.endpoint
        self.where = f"{BUCKET}/{name}"
        self.client = s3.client()
        if BUCKET not in [row["Name"] for row in self.client.list_buckets()["Buckets"]]:
            self.client.create_bucket(Bucket=BUCKET)
        self.runs = Runs(S3ObjectStore(self.client, BUCKET, name), epoch_ms)

    def begin(
        self, run_key: str, *, total_ms: int = 600_000, run_id: str | None = None, execution: str | None = None
    ) -> Any:
        job = requested({"script": "s3://scripts/a.py", "clientToken": run_key}, SETTINGS, "r").job
        deadline = Deadline(epoch_ms() + total_ms, epoch_ms())
        schedule, run_id = Schedule.of(deadline, 0), run_id or f"id-{run_key}"
        return self.runs.begin(job, run_id=run_id, request_id="q", schedule=schedule, execution=execution)

    def soal(self, *arguments: str) -> tuple[int, str, str]:
        options = ("--endpoint-url", self.endpoint, "--bucket", self.where)
        done = CliRunner().invoke(app, ["runs", *arguments, *options])
        if isinstance(done.exception, Problem):
            return done.exception.exit_code, done.stdout, str(done.exception)
        return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def bench(s3: EmbeddedS3, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(s3, request.node.name, monkeypatch)


def test_list_and_show(bench: Bench) -> None:
    """Data is on stdout, for a person and for a program; a state filters the list."""
    bench.runs.end(bench.begin("nightly-1"), state="SUCCESS")
    bench.begin("nightly-2")
    code, out, said = bench.soal("list", "--state", "nonsense")
    assert (code, out, "is none of alive, " in said) == (2, "", True)
    code, out, _ = bench.soal("list", "--json")
    assert code == 0
    assert {run["runKey"]: (run["state"], run["life"]) for run in json.loads(out)} == {
        "nightly-1": ("SUCCESS", None),
        "nightly-2": ("RUNNING", "alive"),
    }
    assert [run["runKey"] for run in json.loads(bench.soal("list", "--state", "success", "--json")[1])] == ["nightly-1"]
    code, out, _ = bench.soal("show", "nightly-2")
    assert (code, "RUNNING" in out, "alive: a sign of life" in out) == (0, True, True)
    code, out, said = bench.soal("show", "nightly-3")
    assert (code, out, "nightly-3" in said) == (1, "", True)


def test_a_damaged_document_is_named(bench: Bench) -> None:
    """The others are listed; of many damaged ones it names the first, and counts the rest."""
    bench.begin("nightly")
    for number in range(22):
        bench.client.put_object(Bucket=BUCKET, Key=f"{bench.where.partition('/')[2]}/runs/{number:02}.json", Body=b"{")
    code, out, said = bench.soal("list", "--limit", "0")
    assert (code, "nightly" in out) == (0, True)
    assert f"s3://{bench.where}/runs/00.json is damaged, or of a version that this soal does not know" in said
    assert ("/runs/19.json" in said, "/runs/20.json" in said, "2 more documents" in said) == (True, False, True)


def test_show_says_why_a_run_failed(bench: Bench) -> None:
    """It shows state, reason, and the error's first lines; a program gets all of them, a watcher the first line."""
    error = "AnalysisException: no such column\n" + "\n".join(f"  at line {number}" for number in range(40))
    bench.runs.end(bench.begin("nightly-1"), state="FAILED", reason=f"{error}; no write of it is in a table")
    code, out, _ = bench.soal("show", "nightly-1")
    assert (code, "FAILED" in out, "AnalysisException: no such column" in out) == (0, True, True)
    assert ("at line 10" in out, "at line 11" in out, "all of it is in the result" in out) == (True, False, True)
    assert json.loads(bench.soal("show", "nightly-1", "--json")[1])["reason"].endswith("no write of it is in a table")
    told = bench.soal("watch", "--past", "--for-s", "0")[1]
    assert ("no such column" in told, "at line 0" in told) == (True, False)


def test_list_says_why_how_long_and_how_many_rows_and_show_what_it_cost(bench: Bench) -> None:
    """A person sees it without another command; the price comes from the attempt's own result."""
    run = bench.begin("nightly-1")
    times, memory = {"totalMs": 90_000, "remainingMs": 1}, {"limitMb": 2048, "peakMb": None}
    told = {"runId": "id-nightly-1", "name": "nightly", "clientToken": "t", "coldStart": True}
    body = json.dumps({**told, "timings": times, "memory": memory}).encode()
    bench.runs.store.put("results/id-nightly-1/run_result.json", body)
    bench.runs.end(run, state="FAILED", reason="KeyError: 'city' (my_job.py, line 12)")
    out = bench.soal("list")[1]
    assert ("KeyError: 'city'" in out.replace("\n", ""), " s " in out) == (True, True)
    assert "180.0 GB-seconds, $0.0030" in bench.soal("show", "nightly-1")[1]
    code, out, _ = bench.soal("cost", "--json")
    (job,) = json.loads(out)["jobs"]
    assert (code, job["job"], job["gbSeconds"]) == (0, "nightly", 180.0)
    assert "prices of arm64 in us-east-1" in bench.soal("cost", "--architecture", "arm64")[1]


def test_the_callers_aws_configuration_is_the_default(bench: Bench) -> None:
    """Without an option it uses the S3 that the environment names; --local excludes --endpoint-url."""
    bench.begin("nightly-1")
    call = ["runs", "list", "--bucket", bench.where, "--json"]
    assert [run["runKey"] for run in json.loads(CliRunner().invoke(app, call).stdout)] == ["nightly-1"]
    code, out, said = bench.soal("list", "--local")
    assert (code, out, said) == (2, "", "--local and --endpoint-url name two endpoints")


def test_watch(bench: Bench) -> None:
    """One JSON value per line; without --past only new events."""
    bench.runs.end(bench.begin("nightly-1"), state="FAILED")
    assert bench.soal("watch", "--for-s", "0")[1] == ""
    code, out, _ = bench.soal("watch", "--past", "--for-s", "0", "--state", "failed", "--json")
    assert code == 0
    (line,) = out.splitlines()
    assert (json.loads(line)["state"], json.loads(line)["runKey"]) == ("FAILED", "nightly-1")
    assert "FAILED" in bench.soal("watch", "--past", "--for-s", "0")[1]
    assert bench.soal("watch", "--past", "--for-s", "0", "--state", "rolled_back")[1] == ""


def test_a_run_that_lives_is_cancelled(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request reaches the handler with its next heartbeat, the job is killed, and the command sees it end."""
    monkeypatch.setattr("handler.process.child._BEAT_S", 0.05)
    run = bench.begin("nightly-1")
    journal = Journal(tmp_path / "journal")
    supervision = Supervision(journal, Settings.from_environment({}, checkpoint_bucket=bench.where))
    guard = RunSupervisor(supervision, bench.runs, run)
    answers: list[tuple[int, str, str]] = []
    cancelling = threading.Thread(target=lambda: answers.append(bench.soal("cancel", "nightly-1", "--json")))
    cancelling.start()

    command = Command((sys.executable, "-c", "import time; time.sleep(600)"), {}, tmp_path)
    output = JobLog(Redactor(), log=lambda _line: None, metric=lambda _line: None)
    with start(command, output, clock=epoch_ms) as child:
        ended = child.supervise(Shutdown(2**60, 2**60), clock=epoch_ms, beat=guard.beat)
    bench.runs.end(run, state="CANCELLED")
    cancelling.join(BUSY_S)

    assert ended.stop is Stop.CANCELLED
    ((code, out, _),) = answers
    assert (code, json.loads(out)["state"]) == (0, "CANCELLED")


def test_what_does_not_run_cannot_be_cancelled(bench: Bench) -> None:
    """The answer gives the reason; the exit code is 75 if a live run has not ended in time."""
    bench.runs.end(bench.begin("ended"), state="SUCCESS")
    code, _, said = bench.soal("cancel", "ended")
    assert (code, "has ended as SUCCESS" in said) == (1, True)
    bench.begin("dead", total_ms=-120_000)
    code, _, said = bench.soal("cancel", "dead")
    assert (code, "is dead" in said) == (1, True)
    assert bench.soal("cancel", "unknown")[0] == 1
    bench.begin("deaf")
    assert bench.soal("cancel", "deaf", "--wait-s", "0")[0] == 75


def test_a_durable_execution_that_waits_is_cancelled_for_its_next_attempt(bench: Bench) -> None:
    """No handler runs that could end it; other executions under the token, and ended ones, are not affected."""
    arn = "arn:aws:lambda:eu-west-1:123456789012:function:soal:7/durable-execution/nightly/3f2c"
    bench.runs.end(bench.begin("nightly", execution=arn), state="INCOMPLETE")
    assert arn in bench.soal("show", "nightly")[1].replace("\n", "")
    code, _, said = bench.soal("cancel", "nightly", "--wait-s", "0")
    assert (code, f"asked the handler of the durable execution {arn}" in said) == (75, True)
    following = bench.begin("nightly", run_id="2", execution=arn)
    assert bench.runs.is_cancelled(following.record)
    bench.runs.end(following, state="CANCELLED")
    assert not bench.runs.is_cancelled(bench.begin("nightly", run_id="3", execution=f"{arn}-another").record)
    bench.runs.end(bench.begin("done", execution=arn), state="SUCCESS")
    assert bench.soal("cancel", "done")[0] == 1


def test_a_bucket_that_may_not_be_listed(bench: Bench) -> None:
    """The error differs from that of an empty bucket."""
    bench.where = CHECKPOINTS
    code, _, said = bench.soal("list")
    assert (code, "AccessDenied" in said) == (1, True)


def test_a_run_whose_record_may_not_be_read_is_not_unknown(bench: Bench, s3: EmbeddedS3) -> None:
    """The run may be alive: a 403 does not decide that, and the error names the missing right."""
    bench.begin("nightly")
    s3.wire.add(Rule(Match(operations={"GetObject"}, key="/runs/"), Refuse(403), times=None))
    try:
        for command in (("cancel", "nightly"), ("show", "nightly")):
            code, _, said = bench.soal(*command)
            assert (code, "denied, or not there" in said, "nothing is known" in said) == (1, True, False)
            assert "s3:GetObject" in said
    finally:
        s3.wire.clear_rules()
    assert bench.soal("cancel", "other")[0] == 1
    assert "nothing is known of a run 'other'" in bench.soal("cancel", "other")[2]
