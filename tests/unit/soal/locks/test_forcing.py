"""Ending a turn by force."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from safewriter.coordination.backend import RecordChanged
from safewriter.coordination.backends.memory import MemoryBackend
from safewriter.coordination.configuration import Configuration
from safewriter.coordination.coordinator import JobCoordinator
from safewriter.coordination.record import End, OpenWrite
from safewriter.coordination.takeover import settle
from safewriter.coordination.transitions import end, renew
from safewriter.errors import TurnLostError
from safewriter.objects import StoreError
from safewriter.record.document import Status
from soal.console.output import Output
from soal.console.problem import EXIT_TRY_AGAIN, Problem
from soal.home import Home
from soal.locks.service import LockService, force, forget
from soal.s3_command import Call
from tests.support.memory_store import MemoryObjectStore
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from safewriter.coordination.backend import Stored
    from safewriter.coordination.record import Record
    from safewriter.coordination.turn import Turn

LOCK = "L"
WRITE = OpenWrite("s3://soal-checkpoints", "write-1", 1)


def seen(backend: MemoryBackend) -> Stored:
    stored = backend.read(LOCK)
    assert stored is not None
    return stored


def coordinator(backend: MemoryBackend, job: str, settled: list[OpenWrite] | None = None) -> JobCoordinator:
    done: list[OpenWrite] = [] if settled is None else settled
    return JobCoordinator(
        Configuration(lock=LOCK, job=job),
        backend,
        settle=lambda write, _: done.append(write),
        decided=lambda writes: writes,
    )


def service(backend: MemoryBackend, bucket: Any = None) -> LockService:
    return LockService(backend, "memory", lambda _: MemoryObjectStore() if bucket is None else bucket)


class Interrupted(MemoryBackend):
    """A backend in which another writer changes the record before the next write."""

    change: Callable[[Record], Record] | None = None

    def write(self, record: Record, after: Stored | None) -> Stored:
        change, self.change = self.change, None
        if change is not None:
            super().write(change(seen(self).record), seen(self))
        return super().write(record, after)


def test_the_old_holder_writes_no_more_and_the_next_one_settles() -> None:
    """Each write of the ended turn is settled before the next turn begins, under a higher token."""
    backend = MemoryBackend()
    settled: list[OpenWrite] = []
    old = coordinator(backend, "Mutation")
    turn = old.lock()
    turn.open_write(WRITE)

    record = force(service(backend), seen(backend)).record
    assert (record.holder, record.unsettled, record.history[-1].end) == (None, (WRITE,), End.FORCED)
    assert not record.job("Mutation").is_done
    with pytest.raises(TurnLostError, match="an operator ended it"):
        turn.open_write(OpenWrite("s3://soal-checkpoints", "write-2", 1))
    assert not old.unlock()

    new = coordinator(backend, "TTL", settled)
    assert new.lock().token > turn.token
    new.unlock()
    assert (settled, seen(backend).record.unsettled) == ([WRITE], ())


def test_the_table_refuses_what_the_old_holder_still_sends() -> None:
    """After the next turn has begun, the table refuses a commit of the old holder, which is still alive."""
    backend, world = MemoryBackend(), World()
    job = world.job().begin()
    job.prepare()
    old = coordinator(backend, "Mutation")
    old.lock().open_write(OpenWrite("s3://checkpoints", world.key, job.document.epoch))
    force(service(backend), seen(backend))

    new = JobCoordinator(
        Configuration(lock=LOCK, job="TTL"),
        backend,
        settle=lambda write, _: settle(write, store=lambda _: world.bucket, table_store=lambda _: world.lake),
        decided=lambda writes: writes,
    )
    new.lock()
    assert world.document.status is Status.ROLLED_BACK
    assert not job.send()
    assert not job.commit()
    new.unlock()
    assert not old.unlock()


def test_a_renewal_meanwhile_does_not_save_the_turn() -> None:
    """A renewal does not save the turn: it is the same grant. Writes that the holder noted meanwhile are kept."""
    backend = Interrupted()
    held = coordinator(backend, "Mutation")
    held.lock()
    first = seen(backend)
    backend.change = renew
    assert force(service(backend), first).record.holder is None
    assert not held.unlock()


def test_another_grant_is_left_alone() -> None:
    """If the turn that the operator saw has ended, another grant is left alone."""
    backend = Interrupted()
    held = coordinator(backend, "Mutation")
    held.lock()
    first = seen(backend)
    backend.change = lambda record: end(record, End.EXPIRED, 0)
    with pytest.raises(Problem, match="has ended by itself; nothing was changed") as refused:
        force(service(backend), first)
    assert refused.value.exit_code == EXIT_TRY_AGAIN
    assert seen(backend).record.history[-1].end is End.EXPIRED
    assert not held.unlock()


def test_a_record_that_never_rests_ends_the_command() -> None:
    """The command gives up on a record that changes all the time: its tries are bounded."""

    class Restless(MemoryBackend):
        def write(self, record: Record, after: Stored | None) -> Stored:
            if after is None or record.holder is not None:
                return super().write(record, after)
            raise RecordChanged(LOCK)

    backend = Restless()
    turn: Turn = coordinator(backend, "Mutation").lock()  # type: ignore[assignment]
    turn.stop()
    with pytest.raises(Problem, match="changes faster than it can be written"):
        force(service(backend), seen(backend))


def test_a_write_that_nobody_can_settle_is_struck() -> None:
    """Only the given write is struck, and only if it is unsettled without a document; the next holder ignores it."""
    backend = MemoryBackend()
    job = coordinator(backend, "A")
    turn = job.lock()
    turn.open_write(WRITE)
    force(service(backend), seen(backend))

    with pytest.raises(Problem, match="sw-other is not an unsettled write of"):
        forget(service(backend), seen(backend), "sw-other")
    assert forget(service(backend), seen(backend), WRITE.write_key).record.unsettled == ()


def test_a_write_whose_document_is_there_is_not_struck() -> None:
    """A write with a document is not struck, since it can be settled: it would land in another job's turn."""
    backend, world = MemoryBackend(), World()
    job = world.job().begin()
    turn = coordinator(backend, "A").lock()
    turn.open_write(OpenWrite("s3://checkpoints", world.key, job.document.epoch))
    force(service(backend), seen(backend))

    with pytest.raises(Problem, match="is there, so the write can be settled; nothing was changed"):
        forget(service(backend, world.bucket), seen(backend), world.key)
    assert len(seen(backend).record.unsettled) == 1


def test_a_document_of_an_earlier_attempt_does_not_save_the_write() -> None:
    """A document of an earlier attempt (from a restored bucket) cannot settle the write, which is struck."""
    backend, world = MemoryBackend(), World()
    world.job().begin()
    coordinator(backend, "A").lock().open_write(OpenWrite("s3://checkpoints", world.key, 2))
    force(service(backend), seen(backend))
    assert forget(service(backend, world.bucket), seen(backend), world.key).record.unsettled == ()


def test_a_document_that_may_not_be_read_is_not_gone() -> None:
    """A document that the operator may not read is not taken for missing: nothing is struck."""
    backend, world = MemoryBackend(), World()
    job = world.job().begin()
    coordinator(backend, "A").lock().open_write(OpenWrite("s3://checkpoints", world.key, job.document.epoch))
    force(service(backend), seen(backend))

    class Unreadable:
        def __init__(self, store: Any) -> None:
            self.uri, self.list = store.uri, store.list

        def get(self, _: str, **__: int) -> None:
            raise StoreError("GET: denied, or not there", denied=True)

    with pytest.raises(StoreError, match="denied, or not there"):
        forget(service(backend, Unreadable(world.bucket)), seen(backend), world.key)
    assert [write.write_key for write in seen(backend).record.unsettled] == [world.key]


@pytest.mark.parametrize(
    "options", [{"endpoint_url": "http://127.0.0.1:9", "local": False}, {"endpoint_url": None, "local": True}]
)
def test_an_endpoint_of_s3_is_not_taken_for_another_service_s(tmp_path: Path, options: dict[str, Any]) -> None:
    """An S3 endpoint for another lock service is refused: the command would end a turn on the real table."""
    call = Call(out=Output(as_json=False), home=Home(tmp_path), bucket=None, **options)
    with pytest.raises(Problem, match="name an S3, and dynamodb://locks is not one"):  # noqa: SIM117
        with LockService.open("dynamodb://locks", call):
            pytest.fail("opened")
