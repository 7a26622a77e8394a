"""The arithmetic of the benchmark, and what it says of a job that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from scripts.bench import start
from scripts.soal.console.problem import Problem
from scripts.soal.invocation.report import Report

if TYPE_CHECKING:
    from scripts.soal.local.function import Function


class Answers:
    """A function that answers so, one after the other."""

    def __init__(self, *reports: Report) -> None:
        self.reports = list(reports)

    def invoke(self, _: object) -> Report:
        return self.reports.pop(0)


def answering(*reports: Report) -> Any:
    answers = Answers(*reports)

    def function(_: object) -> Function:
        return answers  # type: ignore[return-value]

    return function


@pytest.fixture(autouse=True)
def peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes 10 s, then 20, then 40."""
    times = iter([10_000.0, 20_000.0, 40_000.0])
    monkeypatch.setattr(start, "peer_ms", lambda *_: next(times))


def test_each_run_is_compared_with_its_neighbour() -> None:
    """The machine may slow down between pairs; the ratio is the median of the pairs'."""
    cost = start.measure(3, None, answering(*(Report(None, None, 0, ms) for ms in (5_000, 8_000, 12_000))))
    assert (cost.peer_ms, cost.soal_ms) == (20_000, 8_000)
    assert (cost.ratio_min, cost.ratio, cost.ratio_max) == (0.3, 0.4, 0.5)


def test_a_job_that_fails_is_no_figure() -> None:
    """A quick failure would be a good time."""
    with pytest.raises(Problem, match="the job failed: killed"):
        start.measure(1, None, answering(Report(None, "killed", 124, 1)))
