"""Locks on ZooKeeper as one of the services under test (`tests.support.lock_services`)."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

from safewriter.coordination.backends.zookeeper import ZooKeeperBackend
from tests.support.contenders import ProcessContender
from tests.support.zookeeper_locks import LONG_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from safewriter.coordination.backend import Backend, Stored
    from safewriter.coordination.record import Record
    from tests.support.contenders import Contender
    from tests.support.lost_reply import LostReply

__all__ = ["LACKS", "ZooKeeperLocks"]

LACKS: Final = {
    "test_an_older_token_is_not_taken_for_the_same_grant": "no two grants have one token: ZooKeeper counts its changes"
    " on, also for a record that begins anew",
}


class ZooKeeperLocks:
    """Locks below a znode of their own. Their backends' sessions end with the test."""

    def __init__(self, hosts: str) -> None:
        self._hosts, self._root = hosts, f"locks-{uuid.uuid4().hex}"
        self._faulty: list[_Faulty] = []
        self._observing = ZooKeeperBackend(self._hosts, self._root, lease_s=LONG_S)
        self._fault: LostReply | None = None

    def backend(self) -> Backend:
        backend = _Faulty(self._hosts, self._root, lease_s=LONG_S)
        backend.fault = self._fault
        self._faulty.append(backend)
        return backend

    def observer(self) -> Backend:
        return self._observing

    def contender(self, mapping: Mapping[str, str], events: str, *, skew_s: float = 0) -> Contender:
        named = {**mapping, "job.coordinator.backend": f"zookeeper://{self._hosts}/{self._root}"}
        return ProcessContender(named, events, {}, skew_s=skew_s)

    def lose(self, fault: LostReply) -> None:
        self._fault = fault
        for backend in self._faulty:
            backend.fault = fault

    def forget(self, lock: str) -> None:
        self._observing._session._client.delete(f"/{self._root}/{lock}", recursive=True)

    def close(self) -> None:
        for backend in (*self._faulty, self._observing):
            backend.close()


class _Faulty(ZooKeeperBackend):
    """A backend that loses the answer of a transaction and reads the result back, as after a broken connection."""

    fault: LostReply | None = None

    def read(self, lock: str) -> Stored | None:
        self._meet_outage()
        return super().read(lock)

    def write(self, record: Record, after: Stored | None) -> Stored:
        self._meet_outage()
        return super().write(record, after)

    def _commit(self, *change: Any) -> Any:
        stat = super()._commit(*change)
        if self.fault is not None and self.fault.is_next(is_write=True):
            self.fault.lose_answer()
        return stat

    def _landed(self, *change: Any) -> Any:
        self._meet_outage()
        return super()._landed(*change)

    def _meet_outage(self) -> None:
        if self.fault is not None:
            self.fault.meet_outage()
