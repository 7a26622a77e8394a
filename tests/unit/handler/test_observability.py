from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from handler import observability
from handler.outcome import Outcome, State
from handler.report import Facts, result_of
from safewriter.deadline import Deadline
from safewriter.supervision import WriteReport

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def no_metrics_left() -> Iterator[None]:
    yield
    observability.metrics.clear_metrics()


def test_a_result_becomes_metrics() -> None:
    """State and verdicts as counts, times in milliseconds; what was not reached is absent."""
    facts = Facts(Deadline(10_000, 1_000, lambda: 2_000), "request", "run", memory_mb=2048, cold_start=True)
    facts.writes = (
        WriteReport("a", "delta", None, "committed", 1, 1, 1, None, None, "c"),
        WriteReport("b", "delta", None, "unknown", None, None, None, None, None, "c"),
    )
    observability.count(result_of(facts, Outcome(State.UNKNOWN, "d", None)))
    blob: dict[str, Any] = dict(observability.metrics.serialize_metric_set())
    for name in ("ColdStart", "StateUnknown", "VerdictCommitted", "VerdictUnknown"):
        assert blob[name] == [1.0]
    assert (blob["TotalMs"], blob["RemainingMs"]) == ([1000.0], [8000.0])
    assert "SparkStartMs" not in blob


@pytest.mark.parametrize(
    ("line", "level"),
    [("ERROR Executor: x", "ERROR"), ("WARN Utils: x", "WARNING"), ("WARNING", "INFO"), ("100", "INFO")],
)
def test_a_line_of_the_job_is_a_record(line: str, level: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Its text is the message, whatever it looks like."""
    observability.logger.handlers[0].stream = sys.stdout  # type: ignore[attr-defined]  # pytest has put its own there
    observability.log_job_line(line)
    record = json.loads(capsys.readouterr().out)
    assert (record["message"], record["level"], record["source"]) == (line, level, "job")


def test_a_metric_of_the_job_is_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """Unchanged."""
    observability.print_metric('{"_aws":{}}')
    assert capsys.readouterr().out == '{"_aws":{}}\n'
