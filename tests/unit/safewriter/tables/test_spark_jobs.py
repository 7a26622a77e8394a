"""The jobs and tasks of a block: how they are cancelled, and whether they have ended."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError

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


class Running:
    """Spark with these jobs and, on its executors, this many tasks, poll by poll; the last poll stays.

    None in place of the jobs: their records are not made yet.
    """

    def __init__(self, looks: list[tuple[list[str | None] | None, list[int]]]) -> None:
        self._looks = looks

    def waitUntilEmpty(self, _: int) -> None:  # noqa: N802 - Java's name
        jobs, self.tasks = self._looks[0]
        del self._looks[: len(self._looks) > 1]
        if jobs is None:
            raise Py4JJavaError("TimeoutException", SimpleNamespace(_target_id="o1", _gateway_client=None))
        self.jobs = jobs

    def scope(self) -> SparkScope:
        found = scope({}, {})
        python: Any = found.spark.sparkContext
        python.statusTracker = lambda: SimpleNamespace(
            getJobIdsForGroup=lambda _: range(len(self.jobs)),
            getJobInfo=lambda job: None if self.jobs[job] is None else SimpleNamespace(status=self.jobs[job]),
        )
        found.jspark.sparkContext = lambda: SimpleNamespace(
            isStopped=lambda: False, listenerBus=lambda: self, taskScheduler=lambda: self
        )
        return found

    def runningTasksByExecutors(self) -> Any:  # noqa: N802 - Java's name
        left = list(self.tasks)
        java = SimpleNamespace(hasNext=lambda: bool(left), next=left.pop)
        return SimpleNamespace(valuesIterator=lambda: java)


@pytest.mark.parametrize(
    ("looks", "quiet"),
    [
        ([(["SUCCEEDED", "FAILED"], [0, 0])], True),
        ([([None], [])], True),
        ([(["RUNNING"], [0]), (["SUCCEEDED"], [1]), (["SUCCEEDED"], [0])], True),
        ([(None, [0]), (["SUCCEEDED"], [0])], True),
        ([(["SUCCEEDED", "RUNNING"], [0])], False),
        ([(["SUCCEEDED"], [0, 1])], False),
        ([(["SUCCEEDED"], [1, 0])], False),
        ([(None, [0])], False),
    ],
)
def test_a_block_is_quiet_once_no_job_of_it_and_no_task_at_all_runs(
    looks: list[tuple[list[str | None] | None, list[int]]], *, quiet: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task may outlive its job. The patience ends by the clock, which advances one second with each poll."""
    clock = iter(range(1000))
    monkeypatch.setattr("safewriter.tables.spark.time", SimpleNamespace(monotonic=lambda: next(clock), sleep=id))
    assert Running(looks).scope().wait_until_quiet(10) is quiet
