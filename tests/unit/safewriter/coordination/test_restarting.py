"""A stream that had no turn or lost it is restarted; no other stream is."""

from __future__ import annotations

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from safewriter.coordination.stream import run_stream
from safewriter.errors import TurnBlockedError
from tests.support.waiting import BUSY_S
from tests.unit.safewriter.coordination.streams import Job


class FakeQuery:
    """The result of `start`: it ends with an error, without one, or at `stop`."""

    def __init__(self, error: Exception | None = None, *, ends: bool = True) -> None:
        self.runId = uuid.uuid4().hex
        self.error = error
        self._ended = threading.Event()
        if ends:
            self._ended.set()

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802 - Spark's name
        has_ended = self._ended.wait(min(timeout, 0.01))
        if has_ended and self.error is not None:
            raise self.error
        return has_ended

    def stop(self) -> None:
        self._ended.set()


@pytest.fixture
def job() -> Job:
    return Job()


def restarter(job: Job, queries: list[FakeQuery], stop: threading.Event | None = None, restarts_max: int = 5) -> Any:
    starts = iter(queries)
    return run_stream(
        job.batches, lambda: next(starts), stop=stop or threading.Event(), restarts_max=restarts_max, pause_s=0.001  # type: ignore[arg-type, return-value]
    )  # fmt: skip


def given_up(job: Job) -> FakeQuery:
    class GivenUp(FakeQuery):
        def awaitTermination(self, timeout: float) -> bool:  # noqa: N802
            job.batches._given_up = self.runId, TurnBlockedError("Ingestion holds it")
            return super().awaitTermination(timeout)

    return GivenUp(RuntimeError("what py4j leaves of TurnBlockedError"))


def test_a_stream_that_gave_up_its_turn_is_started_again(job: Job) -> None:
    """The type of its error does not matter; the coordinator remembers which start gave up."""
    last = FakeQuery()
    assert restarter(job, [given_up(job), given_up(job), last]) is last


def test_an_operator_reads_why_a_stream_starts_again(job: Job, caplog: pytest.LogCaptureFixture) -> None:
    """A stream that waits for a job that is down would restart for days, and nobody would know."""
    restarter(job, [given_up(job), FakeQuery()])
    (record,) = caplog.records
    assert (record.levelname, record.message.endswith(": Ingestion holds it")) == ("WARNING", True)


def test_a_stream_that_fails_for_another_reason_is_not_started_again(job: Job) -> None:
    """The error propagates, even after an earlier restart."""
    with pytest.raises(RuntimeError, match="another reason"):
        restarter(job, [given_up(job), FakeQuery(RuntimeError("another reason"))])


def test_restarts_are_bounded(job: Job) -> None:
    """With two restarts allowed, the error of the third start propagates."""
    with pytest.raises(RuntimeError, match="TurnBlockedError"):
        restarter(job, [given_up(job) for _ in range(3)], restarts_max=2)


def test_a_recorded_batch_lets_the_restarts_count_from_the_start(job: Job) -> None:
    """A stream that gives up at times, and records batches in between, runs for ever."""
    queries = [given_up(job) for _ in range(3)]
    last = FakeQuery()
    starts = iter([*queries, last])

    def start() -> Any:
        job.batches.recorded += 1
        return next(starts)

    assert run_stream(job.batches, start, stop=threading.Event(), restarts_max=1, pause_s=0.001) is last  # type: ignore[comparison-overlap]


def test_a_stream_is_stopped_from_outside(job: Job) -> None:
    """The event ends the running start, and there is no restart."""
    stop, running = threading.Event(), FakeQuery(ends=False)
    with ThreadPoolExecutor(1) as pool:
        returned = pool.submit(restarter, job, [running], stop)
        stop.set()
        assert returned.result(BUSY_S) is running


def test_an_interrupted_wait_stops_the_stream(job: Job) -> None:
    """Ctrl-C also ends the stream: no thread would restart it, or give its turn back."""
    query = FakeQuery(ends=False)

    class Interrupted(FakeQuery):
        def awaitTermination(self, timeout: float) -> bool:  # noqa: N802
            raise KeyboardInterrupt

        def stop(self) -> None:
            query.stop()

    with pytest.raises(KeyboardInterrupt):
        restarter(job, [Interrupted()])
    assert query.awaitTermination(0)


def test_a_stream_that_gives_up_while_it_is_stopped_is_not_started_again(job: Job) -> None:
    """It was waiting for its turn when the stop came, so its error is no failure."""
    stop, query = threading.Event(), given_up(job)
    stop.set()
    assert restarter(job, [query], stop) is query
