"""The jobs and tasks of a block: how they are cancelled, and whether they have ended."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.safewriter.tables.scopes import Properties, scope

if TYPE_CHECKING:
    from safewriter.tables.spark import SparkScope


@pytest.mark.parametrize(("stopped", "cancelled"), [(True, []), (False, ["safewriter-1"])])
def test_the_jobs_of_a_block_are_cancelled_those_to_come_too(*, stopped: bool, cancelled: list[str]) -> None:
    """A Spark that was stopped has none."""
    found, groups = scope(Properties(), {}), list[str]()
    context = found.jspark.sparkContext()
    context.isStopped = lambda: stopped
    context.cancelJobGroupAndFutureJobs = groups.append
    python: Any = found.spark.sparkContext
    python.setJobGroup = lambda *_, **__: None
    found.begin_group("safewriter-1")

    found.cancel()

    assert groups == cancelled


def running(looks: list[tuple[list[str | None], list[int]]]) -> SparkScope:
    """A scope whose Spark has these jobs and, on its executors, this many tasks, poll by poll; the last poll stays."""
    found = scope({}, {})
    context: Any = found.spark.sparkContext
    seen = iter(looks)
    now: list[Any] = [looks[-1]]

    def jobs(_: str) -> range:
        now[0] = next(seen, looks[-1])
        return range(len(now[0][0]))

    context.statusTracker = lambda: SimpleNamespace(
        getJobIdsForGroup=jobs,
        getJobInfo=lambda job: None if now[0][0][job] is None else SimpleNamespace(status=now[0][0][job], stageIds=[]),
    )
    executors = SimpleNamespace(
        getExecutorInfos=lambda: [SimpleNamespace(numRunningTasks=lambda number=number: number) for number in now[0][1]]
    )
    found.jspark.sparkContext = lambda: SimpleNamespace(isStopped=lambda: False, statusTracker=lambda: executors)
    return found


@pytest.mark.parametrize(
    ("looks", "quiet"),
    [
        ([(["SUCCEEDED", "FAILED"], [0, 0])], True),
        ([([None], [])], True),
        ([(["RUNNING"], [0]), (["SUCCEEDED"], [1]), (["SUCCEEDED"], [0])], True),
        ([(["SUCCEEDED", "RUNNING"], [0])], False),
        ([(["SUCCEEDED"], [0, 1])], False),
    ],
)
def test_a_block_is_quiet_once_no_job_of_it_and_no_task_at_all_runs(
    looks: list[tuple[list[str | None], list[int]]], *, quiet: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task may outlive its job. The patience ends by the clock, which advances one second with each poll."""
    clock = iter(range(1000))
    monkeypatch.setattr("safewriter.tables.spark.time", SimpleNamespace(monotonic=lambda: next(clock), sleep=id))
    assert running(looks).wait_until_quiet(10) is quiet
