"""The sweeper's secrets; tests/integration/handler/test_sweeper.py tests the settling."""

from __future__ import annotations

import functools
import io
import itertools
import json
import logging
import os
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from handler import observability
from handler.functions import sweeper
from handler.functions.sweeper import _count, _problem, _result, _tell, lambda_handler
from handler.redaction.effort import Effort
from handler.redaction.redact import Redactor
from handler.secrets import Secrets, SecretUnavailableError
from safewriter.deadline import Deadline
from safewriter.settle.one_write import Action
from safewriter.settle.sweeper import Look, Sweep, Sweeper
from tests.support.memory_store import MemoryObjectStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from handler.functions.sweeper import SweepResult

ARN = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:lake-AbCdEf"


class Context(SimpleNamespace):
    """The part of Lambda's context that is used."""

    function_name = invoked_function_arn = aws_request_id = "x"
    memory_limit_in_mb = "512"

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


@pytest.fixture(autouse=True)
def world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SW_CHECKPOINT_BUCKET", "checkpoints")
    monkeypatch.setenv("SOAL_SECRETS", json.dumps({"PGPASSWORD": ARN}))
    monkeypatch.setenv("PGPASSWORD", "of before")  # restored at the end
    monkeypatch.setattr(sweeper, "open_store", lambda _: MemoryObjectStore())


def test_secrets_of_catalogs_are_variables_of_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pyiceberg and PostgreSQL's client look for them there."""
    monkeypatch.setattr(sweeper, "read_secrets", lambda _: Secrets({"PGPASSWORD": "pw#1"}))

    assert lambda_handler({}, Context())["seen"] == 0

    assert os.environ["PGPASSWORD"] == "pw#1"


def test_what_needs_no_secret_is_swept_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Then the sweep fails with the secret's name, for the alarm."""

    def fails(_: Mapping[str, Any]) -> Secrets:
        raise SecretUnavailableError(f"the secret {ARN} could not be read")

    monkeypatch.setattr(sweeper, "read_secrets", fails)

    with pytest.raises(SecretUnavailableError, match=ARN):
        lambda_handler({}, Context())

    assert "OldestOpenMs" in capsys.readouterr().out  # the sweep has run to its end


def test_what_settling_logs_is_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table's path, and so a log line of SafeWriter, may contain a catalog's secret."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logging.getLogger().addHandler(handler)
    monkeypatch.setattr(sweeper, "read_secrets", lambda _: Secrets({"PGPASSWORD": "plumeNebula42"}))

    def sweep(_: Sweeper) -> Sweep:
        logging.getLogger("safewriter.settle.recovery").warning("s3://lake/%s/t: undone", "plumeNebula42")
        return Sweep(())

    monkeypatch.setattr(Sweeper, "sweep", sweep)
    try:
        lambda_handler({}, Context())
    finally:
        logging.getLogger().removeHandler(handler)

    assert stream.getvalue() == "s3://lake/[redacted]/t: undone\n"


def test_a_line_has_a_bound_before_it_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search has no limit of time of its own, so no text may be long."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logging.getLogger().addHandler(handler)
    monkeypatch.setattr(sweeper, "read_secrets", lambda _: Secrets())

    def sweep(_: Sweeper) -> Sweep:
        logging.getLogger("safewriter.settle.recovery").warning("words " * 10**6)
        return Sweep(())

    monkeypatch.setattr(Sweeper, "sweep", sweep)
    try:
        lambda_handler({}, Context())
    finally:
        logging.getLogger().removeHandler(handler)

    assert 0 < len(stream.getvalue()) < 7000


def test_an_honest_reason_is_told_however_much_has_been_searched(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The reasons of false documents use up no time of the others."""
    now_s = itertools.count(step=3600)
    monkeypatch.setattr(sweeper, "read_secrets", lambda _: Secrets())
    monkeypatch.setattr(Effort, "__init__", functools.partialmethod(Effort.__init__, cpu=lambda: next(now_s)))

    def sweep(one: Sweeper) -> Sweep:
        one.on_look(Look("sw-1", Action.FAILED, None, "an honest reason"))
        return Sweep(())

    monkeypatch.setattr(Sweeper, "sweep", sweep)

    assert lambda_handler({}, Context())["problems"][0]["reason"] == "an honest reason"
    assert "write sw-1: failed: an honest reason" in caplog.text


def test_the_answer_has_the_first_problems_and_searches_each_reason_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of false documents give as many reasons."""
    searched: list[str] = []

    def sweep(one: Sweeper) -> Sweep:
        for number in range(30):
            one.on_look(Look(f"sw-{number}", Action.FAILED, None, f"reason {number}"))
        return Sweep(())

    def redactor(text: str) -> str:
        searched.append(text)
        return text

    monkeypatch.setattr(Sweeper, "sweep", sweep)
    found = sweeper.handle(
        {"SW_CHECKPOINT_BUCKET": "checkpoints"}, Deadline(60_000, 0), lambda: 0, cast("Redactor", redactor)
    )

    assert [problem.reason for problem in found.problems] == [f"reason {number}" for number in range(20)]
    assert len(searched) == 30


def test_the_reason_of_a_problem_is_without_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    """Database drivers repeat the address to which they could not connect."""
    masked = Redactor().knowing_secrets(["pw#1"])
    look = Look("key", Action.FAILED, None, "postgresql://u:open@h failed with pw#1")

    _tell(look, problem := _problem(look, masked), 0)

    assert problem.reason == "postgresql://[redacted]@h failed with [redacted]"
    assert "pw#1" not in capsys.readouterr().out


def test_a_sweep_has_the_time_that_lambda_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the function's timeout is."""
    given: list[Deadline] = []
    handle = sweeper.handle

    def spied(environment: Mapping[str, str], deadline: Deadline, **more: Any) -> SweepResult:
        given.append(deadline)
        return handle(environment, deadline, **more)

    monkeypatch.setattr(sweeper, "read_secrets", lambda _: Secrets())
    monkeypatch.setattr(sweeper, "handle", spied)
    lambda_handler({}, Context())
    assert [deadline.at_ms - deadline.started_ms for deadline in given] == [60_000]


@pytest.mark.parametrize(("now_ms", "goes_on"), [(0, True), (44_999, True), (45_000, False)])
def test_the_sweeper_stops_while_there_is_time_for_its_answer(
    monkeypatch: pytest.MonkeyPatch, *, now_ms: int, goes_on: bool
) -> None:
    """Lambda would end it in the midst of a write, and the answer would be lost."""
    asked: list[bool] = []

    class Asking(Sweeper):
        def sweep(self) -> Sweep:
            asked.extend((self.may_go_on(), self.recovery.settling.may_go_on()))
            return Sweep(())

    monkeypatch.setattr(sweeper, "Sweeper", Asking)
    sweeper.handle({"SW_CHECKPOINT_BUCKET": "checkpoints"}, Deadline(60_000, 0, lambda: now_ms), lambda: now_ms)
    assert asked == [goes_on] * 2


def test_a_write_in_trouble_is_told_before_the_sweep_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sweep that dies at the next write has already raised the alarms for this one; it is counted once."""
    since = datetime.fromtimestamp(1, UTC)
    look = Look("key", Action.FAILED, None, "why", since)

    class Dying(Sweeper):
        def sweep(self) -> Sweep:
            self.on_look(look)
            raise MemoryError

    monkeypatch.setattr(sweeper, "Sweeper", Dying)
    with pytest.raises(MemoryError):
        sweeper.handle({"SW_CHECKPOINT_BUCKET": "checkpoints"}, Deadline(60_000, 0, lambda: 0), lambda: 5_000)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"_aws"' in line]

    assert [(line["SweepFailed"], line["OldestOpenMs"]) for line in told] == [([1.0], [4_000.0])]
    _count(_result(Sweep((look,)), (), 5_000))
    observability.metrics.flush_metrics()
    (last,) = (json.loads(line) for line in capsys.readouterr().out.splitlines() if '"_aws"' in line)
    assert (last["SweepFailed"], last["OldestOpenMs"]) == ([0.0], [4_000.0])
