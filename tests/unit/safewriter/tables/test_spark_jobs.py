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

    None in place of the jobs: their records are as old as before.
    """

    jobs: list[str | None] = []  # noqa: RUF012 - replaced, never changed

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
        ([(["RUNNING"], [0]), (None, [0]), (["SUCCEEDED"], [0])], True),
        ([(["RUNNING"], [0]), (None, [0])], False),
        ([(None, [0])], True),
        ([(["SUCCEEDED", "RUNNING"], [0])], False),
        ([(["SUCCEEDED"], [0, 1])], False),
        ([(["SUCCEEDED"], [1, 0])], False),
        ([(None, [1])], False),
    ],
)
def test_a_block_is_quiet_once_no_job_of_it_and_no_task_at_all_runs(
    looks: list[tuple[list[str | None] | None, list[int]]], *, quiet: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task may outlive its job. A slow listener of somebody else's holds up no block. The patience ends by the clock,
    which advances one second with each poll.
    """
    clock = iter(range(1000))
    monkeypatch.setattr("safewriter.tables.spark.time", SimpleNamespace(monotonic=lambda: next(clock), sleep=id))
    assert Running(looks).scope().wait_until_quiet(10) is quiet


class Stage(SimpleNamespace):
    """Spark's record of a stage, as Java has it."""

    def __getattr__(self, name: str) -> Any:
        return lambda: self.__dict__.get(f"{name}_", 0)


@pytest.mark.parametrize(
    ("stages", "has_lost"),
    [
        ([], False),
        ([Stage(), Stage()], False),
        ([Stage(), Stage(numKilledTasks_=1)], True),
        ([Stage(numFailedTasks_=1), Stage()], True),
        ([Stage(attemptId_=1)], True),
        ([None, Stage()], True),
        (None, True),
    ],
)
def test_a_task_that_was_killed_or_repeated_is_told_as_is_a_record_that_is_gone(
    stages: list[Any] | None, *, has_lost: bool
) -> None:
    """Spark drops the records of jobs and stages behind many others."""
    found = scope({}, {})
    python: Any = found.spark.sparkContext
    job = None if stages is None else SimpleNamespace(stageIds=range(len(stages)))
    python.statusTracker = lambda: SimpleNamespace(getJobIdsForGroup=lambda _: (7,), getJobInfo=lambda _: job)

    def last(number: int) -> Any:
        if stages is None or stages[number] is None:
            raise Py4JJavaError("NoSuchElementException", SimpleNamespace(_target_id="o1", _gateway_client=None))
        return stages[number]

    found.jspark.sparkContext = lambda: SimpleNamespace(statusStore=lambda: SimpleNamespace(lastStageAttempt=last))
    found._group = "safewriter-1"
    assert found.has_lost_tasks() is has_lost
