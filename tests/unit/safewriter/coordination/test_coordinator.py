"""The JobCoordinator gives a block its turn, settles a dead holder's writes first, and records how the turn ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.coordination import coordinator as coordinators
from safewriter.coordination import current
from safewriter.coordination.backends.memory import MemoryBackend, by_name
from safewriter.coordination.configuration import OnBlocked
from safewriter.coordination.coordinator import JobCoordinator
from safewriter.coordination.record import End, OpenWrite, Record
from safewriter.coordination.transitions import end, grant, open_write
from safewriter.errors import SettingError, TurnBlockedError, TurnLostError, UnknownOutcomeError, UsageError
from safewriter.objects.store import StoreError
from tests.unit.safewriter.coordination.bench import coordinator_of as of
from tests.unit.safewriter.coordination.bench import job, now_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ONE, TWO = OpenWrite("s3://checkpoints", "one", 1), OpenWrite("s3://checkpoints", "two", 1)


@pytest.fixture(autouse=True)
def _no_turn_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(current, "_TURNS", [])
    yield
    assert current._TURNS == []


@pytest.fixture
def backend() -> MemoryBackend:
    return MemoryBackend()


def left_by_a_dead_holder(backend: MemoryBackend, *writes: OpenWrite) -> None:
    record = grant(Record("lock"), job("dead"), "dead", "", 0)
    for write in writes:
        record = open_write(record, write)
    backend.write(end(record, End.EXPIRED, 0), None)


def taken_away(backend: MemoryBackend) -> None:
    backend.write(end(now_of(backend), End.FORCED, 0), backend.read("lock"))


def test_a_turn_that_ends_well_is_completed(backend: MemoryBackend) -> None:
    """During the block, the turn is that of this thread."""
    coordinator = of(backend)
    with coordinator.turn() as turn:
        assert coordinator.held is turn is current.turn_of_this_thread()
        assert now_of(backend).is_held_by(turn.nonce)
    assert coordinator.held is None
    assert now_of(backend).job("A").completed == 1


def test_a_block_that_raises_completes_nothing(backend: MemoryBackend) -> None:
    """Its exception propagates, so that a stream replays the batch."""
    with pytest.raises(ZeroDivisionError), of(backend).turn():
        raise ZeroDivisionError
    assert now_of(backend).history[-1].end is End.FAILED
    assert now_of(backend).holder is None


def test_a_block_s_exception_goes_on_also_without_the_lock_service(
    backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user sees the first error."""

    def fail(*_: object) -> Any:
        raise StoreError("no answer")

    with pytest.raises(ZeroDivisionError), of(backend, lease_s=1).turn():
        monkeypatch.setattr(backend, "write", fail)
        raise ZeroDivisionError


def test_a_block_that_outlives_its_turn_hears_of_it(backend: MemoryBackend) -> None:
    """The block raises, since its turn does not count as completed."""
    with pytest.raises(TurnLostError, match="an operator ended it"), of(backend).turn():
        taken_away(backend)
    assert now_of(backend).completions == 0


def test_nothing_to_do_completes_a_turn(backend: MemoryBackend) -> None:
    """The successors need not wait for the job."""
    of(backend).nothing_to_do()
    assert now_of(backend).history[-1].end is End.NOTHING
    assert now_of(backend).job("A").completed == 1


def test_the_three_calls_of_the_article(backend: MemoryBackend) -> None:
    """`register` returns the job that had the turn before."""
    first, second = of(backend), of(backend, job="B")
    first.lock()
    assert first.register() is None
    assert first.unlock()
    second.lock()
    assert second.register() == "A"
    assert second.unlock()


def test_calls_out_of_order_are_mistakes(backend: MemoryBackend) -> None:
    """`register` without a turn and a second `lock` raise `UsageError`; `unlock` without a turn returns False."""
    coordinator = of(backend)
    with pytest.raises(UsageError, match=r"call lock\(\) first"):
        coordinator.register()
    assert not coordinator.unlock()
    coordinator.lock()
    with pytest.raises(UsageError, match="has its turn on lock already"):
        coordinator.lock()
    coordinator.unlock()


def test_a_job_that_the_order_blocks_gets_no_turn(backend: MemoryBackend) -> None:
    """The block does not begin."""
    with pytest.raises(TurnBlockedError), of(backend, predecessor="P", on_blocked=OnBlocked.RAISE).turn():
        pytest.fail("the block has begun")


# -- what a dead holder left -----------------------------------------------------------------------------------------


def test_what_a_dead_holder_left_open_is_settled_before_the_turn_begins(backend: MemoryBackend) -> None:
    """Later holders have nothing left to settle."""
    left_by_a_dead_holder(backend, ONE, TWO)
    settled: list[OpenWrite] = []
    coordinator = of(backend, settled)
    coordinator.lock()
    assert settled == [ONE, TWO]
    assert now_of(backend).unsettled == ()
    coordinator.unlock()


@pytest.mark.parametrize("error", [UnknownOutcomeError("no verdict"), StoreError("no answer")])
def test_without_a_verdict_there_is_no_turn(backend: MemoryBackend, error: Exception) -> None:
    """The lock is free again; settled writes are removed, and the others stay for the next holder."""
    left_by_a_dead_holder(backend, ONE, TWO)

    def settle(write: OpenWrite, _: object) -> None:
        if write == TWO:
            raise error

    with pytest.raises(TurnBlockedError, match=r"an earlier holder's write is not settled \(no .*Nothing was written"):
        of(backend, settle=settle).lock()
    assert now_of(backend).unsettled == (TWO,)
    assert now_of(backend).holder is None
    assert now_of(backend).completions == 0


def test_a_bug_in_settling_gives_the_lock_back(backend: MemoryBackend) -> None:
    """Otherwise no process would renew the turn or give it back."""
    left_by_a_dead_holder(backend, ONE)

    def settle(*_: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        of(backend, settle=settle).lock()
    assert now_of(backend).holder is None
    assert now_of(backend).unsettled == (ONE,)


# -- writes without a verdict ----------------------------------------------------------------------------------------


def test_a_turn_with_a_write_without_a_verdict_is_not_completed(backend: MemoryBackend) -> None:
    """The next holder settles that write."""
    coordinator = of(backend, decided=lambda writes: [one for one in writes if one != TWO])
    turn = coordinator.lock()
    turn.open_write(ONE)
    turn.open_write(TWO)
    assert not coordinator.unlock()
    assert now_of(backend).unsettled == (TWO,)
    assert now_of(backend).history[-1].end is End.FAILED


# -- under the handler, and from settings ----------------------------------------------------------------------------


class Lent:
    """A turn that the handler holds."""

    lock, job, nonce, token, previous, left_s, is_lost = "lock", "A", "n", 1, "B", 1.0, False

    def is_of(self, lock: str, backend: str) -> bool:
        return (lock, backend) == ("lock", "memory://lent")

    def lost_error(self) -> TurnLostError:
        return TurnLostError("the turn has ended")


def test_under_the_handler_a_job_has_the_handler_s_turn(
    backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job does not use the lock service, except for other locks."""
    lent: Any = Lent()
    monkeypatch.setattr(coordinators, "borrowed_turn", lambda: lent)
    monkeypatch.setenv("SW_LOCKS", "memory://lent")
    coordinator = of(backend)
    with coordinator.turn() as turn:
        assert [turn] == [lent]
        assert coordinator.register() == "B"
    assert backend.read("lock") is None
    for more in ({"lock": "another"}, {"backend": "memory://another"}):
        with JobCoordinator(job(**more), backend).turn() as turn:
            assert [turn] != [lent]
    with pytest.raises(TurnLostError), coordinator.turn():
        lent.is_lost = True


def test_a_coordinator_is_made_of_keys() -> None:
    """The keys also name the lock service; an error names the wrong key."""
    keys = {"lock.name": "lock", "name": "A", "backend": "memory://keys"}
    settings = {f"job.coordinator.{key}": value for key, value in keys.items()}
    assert JobCoordinator.from_mapping(settings).backend is by_name("keys")

    spark: Any = SimpleNamespace(conf=SimpleNamespace(getAll=settings))
    assert JobCoordinator.from_spark(spark).configuration.job == "A"
    with pytest.raises(SettingError, match="backend"):
        JobCoordinator.from_mapping({**settings, "job.coordinator.backend": "redis://here"})


def test_a_dead_holder_s_write_is_settled_in_the_catalogs_of_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """A document tells no address of one."""
    settled: list[tuple[str, object]] = []
    monkeypatch.setattr(
        coordinators, "settle", lambda write, _, *, spark_settings: settled.append((write.write_key, spark_settings))
    )
    keys = {"lock.name": "lock", "name": "B", "backend": "memory://session"}
    catalog = {"spark.sql.catalog.lake.uri": "https://own"}
    settings = {**{f"job.coordinator.{key}": value for key, value in keys.items()}, **catalog}
    left_by_a_dead_holder(by_name("session"), ONE)
    spark: Any = SimpleNamespace(conf=SimpleNamespace(getAll=settings))
    with JobCoordinator.from_spark(spark).turn():
        assert settled == [("one", catalog)]
