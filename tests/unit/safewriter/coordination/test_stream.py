"""The turns of a stream's batches: when they begin, how long they are held, and how they end."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.coordination import Configuration, End, JobCoordinator, OnBlocked
from safewriter.coordination.backends.memory import MemoryBackend
from safewriter.coordination.current import turn_of_this_thread
from safewriter.coordination.record import OpenWrite
from safewriter.errors import SettingError, TurnBlockedError, TurnLostError
from safewriter.objects.store import StoreError
from tests.support.waiting import until
from tests.unit.safewriter.coordination.streams import LOCK, FakeStream, Job

if TYPE_CHECKING:
    from safewriter.coordination.backend import Stored
    from safewriter.coordination.record import Record


@pytest.fixture
def job() -> Job:
    return Job()


def nothing(frame: Any, batch_id: int) -> None:
    """A batch that does nothing."""


def test_a_turn_is_held_until_its_batch_is_recorded(job: Job) -> None:
    """The function has returned and the lock is still held; the turn completes once the stream's log has the batch."""
    job.batch(nothing)
    assert job.record().holder is not None
    job.stream.recorded.add(0)
    job.batches.wait()
    assert (job.record().holder, job.ends(), job.batches.recorded) == (None, [End.COMPLETED], 1)


def test_a_turn_fails_whose_stream_ends_without_the_batch(job: Job) -> None:
    """A stream that was stopped between the function's return and its own log delivers the batch again."""
    job.batch(nothing)
    job.stream.ended = True
    job.batches.wait()
    assert (job.record().holder, job.ends()) == (None, [End.FAILED])


def test_a_stream_that_ends_right_after_its_last_batch_completes_the_turn(job: Job) -> None:
    """The commit log decides, even if the stream has ended already (`availableNow`)."""
    job.stream.recorded.add(0)
    job.stream.ended = True
    job.batch(nothing)
    job.batches.wait()
    assert job.ends() == [End.COMPLETED]


def test_a_batch_recorded_between_two_questions_completes_the_turn(job: Job) -> None:
    """The stream records the batch and ends right after the first read of its log."""

    class Ending(FakeStream):
        def has_recorded(self, batch_id: int) -> bool:
            before = batch_id in self.recorded
            self.recorded.add(batch_id)
            self.ended = True
            return before

    job.stream = Ending()
    job.batch(nothing)
    job.batches.wait()
    assert job.ends() == [End.COMPLETED]


def test_the_next_batch_waits_for_the_turn_of_the_one_before(job: Job) -> None:
    """The first batch's thread still polls the log when the second one begins; both turns complete."""

    class Late(FakeStream):
        questions = 0

        def has_recorded(self, batch_id: int) -> bool:
            self.questions += 1
            return self.questions > 2

    job.stream = Late()
    job.batch(nothing, 0)
    job.batch(nothing, 1)
    job.batches.wait()
    assert job.ends() == [End.COMPLETED, End.COMPLETED]


def test_a_batch_that_raises_gives_its_turn_back_at_once(job: Job) -> None:
    """The turn fails, and the batch's own exception propagates to Spark."""

    def fail(frame: Any, batch_id: int) -> None:
        raise RuntimeError("its own")

    with pytest.raises(RuntimeError, match="its own"):
        job.batch(fail)
    assert (job.record().holder, job.ends()) == (None, [End.FAILED])


def test_a_batch_without_a_turn_raises(job: Job) -> None:
    """Spark delivers the batch again, and the function is not called."""
    other = Job(job.backend)
    other.coordinator.lock()
    blocked = Job(job.backend, max_wait_s=0)
    called: list[int] = []
    with pytest.raises(TurnBlockedError):
        blocked.batch(lambda _, batch_id: called.append(batch_id))
    assert called == []
    assert isinstance(blocked.batches.why_given_up(blocked.stream.run), TurnBlockedError)
    other.coordinator.unlock()


def test_a_batch_that_has_outlived_its_turn_raises(job: Job) -> None:
    """Another job may have written since; Spark delivers the batch again."""

    def lose(frame: Any, batch_id: int) -> None:
        held = job.coordinator.held
        assert held is not None
        held._lose("the test says so")  # type: ignore[union-attr]

    with pytest.raises(TurnLostError):
        job.batch(lose)
    assert isinstance(job.batches.why_given_up(job.stream.run), TurnLostError)


def test_a_stream_that_is_being_stopped_does_not_wait_for_its_turn(job: Job) -> None:
    """Spark's stop() waits for foreachBatch; the wait for the turn ends at the next poll."""
    other = Job(job.backend)
    other.coordinator.lock()
    job.stream.stopped = True
    with pytest.raises(TurnBlockedError):
        job.batch(nothing)
    other.coordinator.unlock()


def test_skip_is_refused_for_streams() -> None:
    """Spark would treat a skipped batch as done; the message names the key."""
    job = Job(on_blocked=OnBlocked.SKIP)
    with pytest.raises(SettingError, match=r"job\.coordinator\.on\.blocked"):
        job.batches.for_each(nothing)


def test_a_write_after_the_batch_is_not_one_of_its_turn(job: Job) -> None:
    """While the thread waits for the batch's record, this process does not write under its turn."""
    seen: list[object] = []
    job.batch(lambda *_: seen.append(turn_of_this_thread()))
    assert (seen, turn_of_this_thread()) == ([job.coordinator.held], None)
    job.stream.ended = True
    job.batches.wait()


def test_a_jvm_that_answers_no_more_ends_the_turn(job: Job) -> None:
    """It is unknown whether the batch is recorded, so after a lease the turn counts as failed."""
    silent = Job(job.backend, lease_s=1)
    silent.stream.silent = True
    silent.batch(nothing)
    silent.batches.wait()
    assert silent.ends() == [End.FAILED]


def test_a_lock_service_that_does_not_answer_is_asked_again() -> None:
    """The batch is recorded, so its turn must complete in spite of one lost answer: its successors wait for that."""

    class Failing(MemoryBackend):
        failures = 0

        def write(self, record: Record, after: Stored | None) -> Stored:
            if record.holder is None and self.failures:
                self.failures -= 1
                raise StoreError("no answer")
            return super().write(record, after)

    backend = Failing()
    job = Job(backend)
    backend.failures = 3
    job.stream.recorded.add(0)
    job.batch(nothing)
    job.batches.wait()
    assert (backend.failures, job.ends()) == (0, [End.COMPLETED])


def test_a_turn_whose_writes_nobody_can_look_at_is_given_back() -> None:
    """The checkpoint bucket does not answer: the next holder settles the write, and the renewals end."""

    def no_answer(_: object) -> list[OpenWrite]:
        raise StoreError("no answer")

    backend = MemoryBackend()
    before = set(threading.enumerate())
    coordinator = JobCoordinator(Configuration(lock=LOCK, job="Ingestion", lease_s=1), backend, decided=no_answer)
    write = OpenWrite("s3://checkpoints", "sw-0", 1)
    coordinator.lock().open_write(write)
    assert coordinator.unlock() is False
    stored = backend.read(LOCK)
    assert stored is not None
    assert (stored.record.holder, stored.record.unsettled) == (None, (write,))
    assert stored.record.history[-1].end is End.FAILED
    assert until(lambda: all(one.name != "safewriter-turn" for one in set(threading.enumerate()) - before))
