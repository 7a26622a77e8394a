"""Turns and their sessions, with a real ZooKeeper server."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from safewriter.coordination import JobCoordinator
from safewriter.coordination.acquiring import Acquirer
from safewriter.coordination.backend import RecordChanged
from safewriter.coordination.borrowed import BorrowedTurn
from safewriter.coordination.record import OpenWrite
from safewriter.coordination.transitions import join, renew
from safewriter.errors import SettingError, TurnBlockedError, TurnLostError
from safewriter.objects.store import StoreError
from tests.support.waiting import until
from tests.support.zookeeper import end_session, start_zookeeper
from tests.support.zookeeper_locks import czxid, granted, job, read

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.coordination.backends.zookeeper import ZooKeeperBackend


def test_a_turn_ends_with_its_session(backend: ZooKeeperBackend, other: ZooKeeperBackend, lock: str) -> None:
    """Once the server has ended the session, the turn is lost, and does not count as completed."""
    coordinator = JobCoordinator(job(lock), backend)
    turn = coordinator.lock()
    end_session(backend)
    assert until(lambda: turn.is_lost)
    with pytest.raises(TurnLostError, match="ended the session"):
        turn.check()
    assert not coordinator.unlock()
    assert read(other, lock).record.completions == 0


def test_a_coordinator_takes_turns_in_its_next_session(backend: ZooKeeperBackend, lock: str) -> None:
    """A job whose session has ended gets its next turn in another session, with a higher token."""
    coordinator = JobCoordinator(job(lock), backend)
    first = coordinator.lock()
    end_session(backend)
    assert until(lambda: first.is_lost)
    coordinator.unlock()
    second = coordinator.lock()
    assert second.token > first.token
    assert coordinator.unlock()


def test_a_renewal_needs_the_session_of_the_grant(
    backend: ZooKeeperBackend, other: ZooKeeperBackend, lock: str
) -> None:
    """After its session has ended, a holder cannot renew, even if no job has taken the lock over yet."""
    stored = granted(backend, lock, "one")
    end_session(backend)
    assert until(lambda: read(other, lock).is_alive is False)
    with pytest.raises(RecordChanged):
        other.write(renew(stored.record), stored)
    assert other.write(join(stored.record, job(lock), "two", 0), read(other, lock)).is_alive is False


def test_a_turn_without_a_session_is_lost_at_its_renewal(
    backend: ZooKeeperBackend, other: ZooKeeperBackend, lock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn that missed its session's end learns of it from the record."""
    monkeypatch.setattr(backend._session, "listen", lambda _: None)
    turn = JobCoordinator(job(lock), backend).lock()
    end_session(backend)
    assert until(lambda: read(other, lock).is_alive is False)
    with pytest.raises(TurnLostError, match="ended the session"):
        until(lambda: not _fails(lambda: turn.open_write(OpenWrite("s3://checkpoints", "k", 1))))


def test_a_borrowed_turn_opens_no_write_after_the_session(
    backend: ZooKeeperBackend, other: ZooKeeperBackend, lock: str
) -> None:
    """A job under the handler opens no write once the handler's session has ended, even while the lock is free."""
    turn = JobCoordinator(job(lock), backend).lock()
    told = {"lock": lock, "job": "Job", "token": turn.token, "nonce": turn.nonce, "previous": None, "backend": "x"}
    borrowed = BorrowedTurn(other, told)
    borrowed.check()
    end_session(backend)
    assert until(lambda: read(other, lock).is_alive is False)
    with pytest.raises(TurnLostError):
        borrowed.open_write(OpenWrite("s3://checkpoints", "k", 1))
    with pytest.raises(TurnLostError):
        BorrowedTurn(other, told).check()


def test_a_grant_that_was_lost_with_its_session_is_given_anew(
    backend: ZooKeeperBackend, other: ZooKeeperBackend, lock: str
) -> None:
    """A waiter whose grant had no answer, and whose session has ended since, does not consider itself the holder."""
    first = granted(backend, lock, "same")
    end_session(backend)
    assert until(lambda: read(other, lock).is_alive is False)
    stored, _ = Acquirer(other, job(lock), "same").acquire()
    assert stored.is_alive
    assert stored.record.token == czxid(other, lock, "same") > first.record.token


def test_closing_ends_the_turn_before_the_session(
    backend: ZooKeeperBackend, lock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backend that is closed ends its turns before another job can take the lock over."""
    turn = JobCoordinator(job(lock), backend).lock()
    stop, is_lost = backend._session._client.stop, []

    def noting() -> None:
        is_lost.append(turn.is_lost)
        stop()

    monkeypatch.setattr(backend._session._client, "stop", noting)
    backend.close()
    assert is_lost == [True]


def test_without_a_server_nothing_is_locked(lock: str) -> None:
    """A job whose ensemble does not answer gets no turn, and an error with the reason."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"zookeeper://127.0.0.1:{silent.getsockname()[1]}/locks"
        configuration = replace(job(lock, lease_s=1.0), backend=uri, max_wait_s=0.0)
        with pytest.raises(TurnBlockedError, match="ZooKeeper does not answer"):
            JobCoordinator(configuration).lock()


def test_a_session_shorter_than_the_lease_is_refused(
    tmp_path_factory: pytest.TempPathFactory, opened: Callable[[str], ZooKeeperBackend], lock: str
) -> None:
    """If the ensemble ends sessions sooner than the lease, nothing is granted, and the error names the key."""
    with start_zookeeper(tmp_path_factory.mktemp("short"), session_max_s=5) as server:
        backend = opened(server.uri)
        with pytest.raises(SettingError, match=r"lease\.seconds.*60 is more than the 5 s"):
            JobCoordinator(job(lock), backend).lock()
        assert backend.read(lock) is None
        with JobCoordinator(job(lock, lease_s=5), backend).turn():
            pass


def test_a_turn_that_is_forgotten_is_told_nothing(backend: ZooKeeperBackend, lock: str) -> None:
    """A backend keeps no reference to an ended turn."""
    coordinator = JobCoordinator(job(lock), backend)
    for _ in range(5):
        with coordinator.turn():
            pass
    assert len(backend._session._listeners) <= 2


def _fails(act: Callable[[], None]) -> bool:
    """Return whether the service does not answer, as in the first moments after a session's end."""
    try:
        act()
    except StoreError:
        return True
    return False
