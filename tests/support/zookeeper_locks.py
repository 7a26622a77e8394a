"""Locks for tests of ZooKeeper: jobs, grants without a turn, and the server's records."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from safewriter.coordination.backends.opening import open_backend
from safewriter.coordination.configuration import Configuration
from safewriter.coordination.record import End, Record
from safewriter.coordination.transitions import end, grant
from tests.support.waiting import BUSY_S, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safewriter.coordination import JobCoordinator
    from safewriter.coordination.backend import Stored
    from safewriter.coordination.backends.zookeeper import ZooKeeperBackend


__all__ = ["LONG_S", "connected", "czxid", "granted", "job", "read", "released", "waiting"]

LONG_S = 60.0
"""A lease that outlasts any test."""


def job(lock: str, name: str = "Job", *, lease_s: float = LONG_S, poll_s: float = 0.01) -> Configuration:
    return Configuration(lock=lock, job=name, lease_s=lease_s, poll_s=poll_s, max_wait_s=BUSY_S)


def granted(backend: ZooKeeperBackend, lock: str, nonce: str, *, lease_s: float = LONG_S) -> Stored:
    """Grant the lock to `nonce` without a turn that would renew it."""
    before = backend.read(lock)
    record = Record(lock) if before is None else before.record
    if record.holder is not None:
        record = end(record, End.EXPIRED, 0)
    return backend.write(grant(record, job(lock, lease_s=lease_s), nonce, "", 0), before)


def released(backend: ZooKeeperBackend, lock: str) -> Stored:
    return backend.write(end(read(backend, lock).record, End.COMPLETED, 0), read(backend, lock))


def read(backend: ZooKeeperBackend, lock: str) -> Stored:
    stored = backend.read(lock)
    assert stored is not None
    return stored


def czxid(backend: ZooKeeperBackend, lock: str, nonce: str) -> int:
    return int(backend._session.ask(lambda client: [client.exists_async(f"/locks/{lock}/{nonce}")]).czxid)


@contextmanager
def waiting(coordinator: JobCoordinator, seen_by: ZooKeeperBackend) -> Iterator[list[object]]:
    """Let a job wait for its turn in a thread; the list holds its turn, or its error, after the block."""
    found: list[object] = []

    def take() -> None:
        try:
            found.append(coordinator.lock())
        except Exception as error:  # noqa: BLE001 - the test looks at it
            found.append(error)

    lock = coordinator.configuration.lock
    thread = threading.Thread(target=take)
    thread.start()
    try:
        assert until(lambda: read(seen_by, lock).record.queue != ())
        yield found
    finally:
        thread.join(BUSY_S)


@contextmanager
def connected(uri: str) -> Iterator[ZooKeeperBackend]:
    """Yield a backend whose session ends with the block."""
    backend = cast("ZooKeeperBackend", open_backend(uri, lease_s=LONG_S))
    try:
        yield backend
    finally:
        backend.close()
