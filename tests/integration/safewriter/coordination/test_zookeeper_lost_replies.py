"""Changes of locks whose reply, or request, is lost between a job and a real ZooKeeper server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.coordination import JobCoordinator
from safewriter.coordination.backend import RecordChanged
from safewriter.coordination.record import End, OpenWrite
from safewriter.coordination.transitions import renew
from safewriter.coordination.turn import Turn
from safewriter.objects.store import StoreError
from tests.support.waiting import BUSY_S
from tests.support.zookeeper import LosingProxy
from tests.support.zookeeper_locks import connected, czxid, granted, job, read, waiting

if TYPE_CHECKING:
    from safewriter.coordination.backends.zookeeper import ZooKeeperBackend
    from tests.support.zookeeper_server import ZooKeeper


def test_a_grant_whose_reply_is_lost_is_had(server: ZooKeeper, other: ZooKeeperBackend, lock: str) -> None:
    """A job whose grant has landed without a reply has its turn, once."""
    with LosingProxy(server) as proxy, connected(proxy.uri) as backend:
        backend.read(lock)
        proxy.lose_reply()
        coordinator = JobCoordinator(job(lock), backend)
        turn = coordinator.lock()
        assert proxy.lost == 1
        assert turn.token == read(other, lock).record.token == czxid(other, lock, turn.nonce)
        assert coordinator.unlock()
    assert [past.end for past in read(other, lock).record.history] == [End.COMPLETED]


def test_a_grant_that_was_lost_is_tried_again(server: ZooKeeper, other: ZooKeeperBackend, lock: str) -> None:
    """A job whose grant never reached the server still gets its turn, once."""
    with LosingProxy(server) as proxy, connected(proxy.uri) as backend:
        backend.read(lock)
        proxy.lose_request()
        coordinator = JobCoordinator(job(lock), backend)
        coordinator.lock()
        assert proxy.lost == 1
        assert coordinator.unlock()
    assert [past.end for past in read(other, lock).record.history] == [End.COMPLETED]


def test_a_release_whose_reply_is_lost_counts(server: ZooKeeper, other: ZooKeeperBackend, lock: str) -> None:
    """A turn whose release has landed without a reply is completed, and the next job has its turn."""
    with LosingProxy(server) as proxy, connected(proxy.uri) as backend:
        coordinator = JobCoordinator(job(lock), backend)
        first = coordinator.lock()
        with waiting(JobCoordinator(job(lock, "Next", poll_s=2 * BUSY_S), other), other) as found:
            proxy.lose_reply()
            assert coordinator.unlock()
            assert proxy.lost == 1
    assert isinstance(found[0], Turn), found
    assert found[0].token > first.token
    assert [past.end for past in read(other, lock).record.history] == [End.COMPLETED]


def test_a_renewal_whose_reply_is_lost_keeps_the_turn(server: ZooKeeper, lock: str) -> None:
    """A holder's change that has landed without a reply is no reason to stop."""
    with LosingProxy(server) as proxy, connected(proxy.uri) as backend:
        coordinator = JobCoordinator(job(lock), backend)
        turn = coordinator.lock()
        proxy.lose_reply()
        turn.open_write(OpenWrite("s3://checkpoints", "k", 1))
        assert proxy.lost == 1
        assert isinstance(turn, Turn)
        assert [write.write_key for write in turn.writes] == ["k"]
        turn.check()


def test_a_write_whose_reply_is_lost_has_landed(server: ZooKeeper, other: ZooKeeperBackend, lock: str) -> None:
    """A grant or a renewal in the record is returned like any other, although its reply was lost."""
    with LosingProxy(server) as proxy, connected(proxy.uri) as backend:
        backend.read(lock)
        proxy.lose_reply()
        stored = granted(backend, lock, "one")
        assert stored == read(other, lock)
        proxy.lose_reply()
        renewed = backend.write(renew(stored.record), stored)
        assert proxy.lost == 2
        assert renewed == read(other, lock)
        assert renewed.record.holder == renew(stored.record).holder


def test_a_write_that_never_came_is_undecided(server: ZooKeeper, lock: str) -> None:
    """A change without a reply that is not in the record may still land: it counts neither as lost nor as landed."""
    with LosingProxy(server) as proxy, connected(proxy.uri) as backend:
        stored = granted(backend, lock, "one")
        proxy.lose_request()
        with pytest.raises(StoreError, match="does not tell"):
            backend.write(renew(stored.record), stored)
        assert read(backend, lock) == stored


def test_a_write_that_was_written_over_is_undecided(
    server: ZooKeeper, other: ZooKeeperBackend, lock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change without a reply, followed by another job's, counts neither as lost nor as landed."""
    with LosingProxy(server) as proxy, connected(proxy.uri) as backend:
        stored = granted(backend, lock, "one")
        look = backend._landed

        def landed(*arguments: object) -> object:
            other.write(renew(read(other, lock).record), read(other, lock))
            return look(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(backend, "_landed", landed)
        proxy.lose_reply()
        with pytest.raises(StoreError, match="does not tell"):
            backend.write(renew(stored.record), stored)


def test_a_lost_write_in_whose_place_is_another_one_is_lost(
    server: ZooKeeper, other: ZooKeeperBackend, lock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change without a reply is lost if another one has taken its version."""
    with LosingProxy(server) as proxy, connected(proxy.uri) as backend:
        stored = granted(backend, lock, "one")
        look = backend._landed

        def landed(*arguments: object) -> object:
            other.write(renew(stored.record), stored)
            return look(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(backend, "_landed", landed)
        proxy.lose_request()
        with pytest.raises(RecordChanged):
            backend.write(renew(stored.record), stored)
