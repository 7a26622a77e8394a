"""The arithmetic of the benchmark, and what it says of a job that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from soal.console.problem import Problem
from soal.invocation.report import Report
from tests.lab.bench import start

if TYPE_CHECKING:
    from scripts.local.function import Function
    from soal.testing.s3.embedded import EmbeddedS3

pytestmark = pytest.mark.slow


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
    """It takes 10 s, then 20, then 40, and twice as many of CPU time."""
    times = iter([10_000.0, 20_000.0, 40_000.0])
    monkeypatch.setattr(start, "peer", lambda *_: start.Run(ms := next(times), ms / 500))


def test_each_run_is_compared_with_its_neighbour() -> None:
    """The machine may slow down between pairs; the ratio is the median of the pairs'."""
    cost = start.measure(3, None, answering(*(Report(None, None, 0, ms, ms / 1000) for ms in (5_000, 8_000, 12_000))))
    assert (cost.peer_ms, cost.soal_ms) == (20_000, 8_000)
    assert (cost.ratio_min, cost.ratio, cost.ratio_max) == (0.3, 0.4, 0.5)
    assert (cost.peer_cpu_s, cost.soal_cpu_s) == (40, 8)
    assert (cost.cpu_ratio_min, cost.cpu_ratio, cost.cpu_ratio_max) == (0.15, 0.2, 0.25)


@pytest.mark.parametrize("job", start.JOBS)
def test_both_functions_find_the_scripts_of_each_job(job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are in the bucket that the event and the peer's variables name."""
    seen: list[str] = []

    class Looks:
        def __init__(self, s3: EmbeddedS3) -> None:
            self.keys = s3.keys("soal-scripts")

        def invoke(self, event: dict[str, str]) -> Report:
            seen.extend(key for key in self.keys if event["entryPoint"].endswith(key))
            return Report(None, None, 0, 1, 1.0)

    def theirs(s3: EmbeddedS3, *_: object) -> start.Run:
        keys.append(Looks(s3))
        return start.Run(1, 1)

    keys: list[Looks] = []
    monkeypatch.setattr(start, "peer", theirs)
    start.measure(1, None, lambda _: keys[-1], job)  # type: ignore[arg-type,return-value]
    assert seen == [f"jobs/{start.JOBS[job][0]}"]
    assert f"jobs/{start.JOBS[job][1]}" in keys[0].keys


def test_a_job_that_fails_is_no_figure() -> None:
    """A quick failure would be a good time."""
    with pytest.raises(Problem, match="the job failed: killed"):
        start.measure(1, None, answering(Report(None, "killed", 124, 1)))
