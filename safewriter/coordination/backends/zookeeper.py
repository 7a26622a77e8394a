"""Locks on ZooKeeper: a znode for each record, and below it an ephemeral znode for the holder's session.

`/ROOT/LOCK` holds the record. `/ROOT/LOCK/NONCE` stands for the holder: ZooKeeper deletes it when the session ends. A
grant writes the first and creates the second in one transaction. That transaction's number (the czxid of the new znode)
is the token: ZooKeeper counts all changes, and its count outlives sessions and restarts.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kazoo.exceptions import BadVersionError, NoAuthError, NodeExistsError, NoNodeError
from kazoo.protocol.states import ZnodeStat

from safewriter.coordination.backend import RecordChanged, Stored
from safewriter.coordination.backends.zookeeper_session import Session
from safewriter.coordination.configuration import PREFIX
from safewriter.coordination.record import Record
from safewriter.coordination.transitions import with_token
from safewriter.errors import SettingError
from safewriter.objects.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kazoo.client import KazooClient, TransactionRequest

    from safewriter.coordination.backend import Connection
    from safewriter.coordination.record import Holder

__all__ = ["ZooKeeperBackend"]


class ZooKeeperBackend:
    """Locks below one znode, in one session of this process. `hosts` is `host:port[,host:port]`.

    Parameters
    ----------
    lease_s
        The session timeout: after this many seconds without a message from this process ZooKeeper ends its grants.
    """

    server = ""

    def __init__(self, hosts: str, root: str, *, lease_s: float = 30.0) -> None:
        self._hosts, self._root = hosts, "/" + root.strip("/")
        self._session = Session(hosts, lease_s)
        self._something = threading.Condition()
        self._events = 0

    # -- the record --------------------------------------------------------------------------------------------------

    def read(self, lock: str) -> Stored | None:
        reply = self._get(lock)
        if reply is None:
            return None
        body, stat = reply
        record = Record.decode(body, f"zookeeper://{self._hosts}{self._path(lock)}")
        if record.holder is None:
            return Stored(record, stat.version)
        node = self._node(lock, record.holder)
        holder = self._session.ask(lambda client: [client.exists_async(node)])
        if holder is None:
            return Stored(record, stat.version, is_alive=False)
        return Stored(_numbered(record, holder.czxid), stat.version, is_alive=True)

    def write(self, record: Record, after: Stored | None) -> Stored:
        begins = _is_grant(record, after)
        if begins:
            self._check_session(record)
        if after is None:
            self._session.ask(lambda client: [client.ensure_path_async(self._root)])
        body = record.encode()
        try:
            stat = self._commit(record.lock, lambda change: self._change(change, record, body, after))
        except StoreError as error:
            if error.denied:
                raise
            stat = self._landed(record.lock, body, after)
        if begins:
            return self._begun(record, stat)
        is_alive = None if record.holder is None else (after is None or after.is_alive is not False)
        return Stored(record, stat.version, is_alive)

    def _change(self, change: TransactionRequest, record: Record, body: bytes, after: Stored | None) -> None:
        """Add the operations of a write. Each of the three parts fails the transaction if another job was faster."""
        path = self._path(record.lock)
        if after is None:
            change.create(path)
        change.set_data(path, body, version=_number(after))
        begins = _is_grant(record, after)
        if after is not None and after.record.holder is not None and after.is_alive is not False:
            node = self._node(record.lock, after.record.holder)
            if record.holder is None or begins:
                change.delete(node)
            else:
                change.check(node, version=-1)
        if record.holder is not None and begins:
            change.create(self._node(record.lock, record.holder), ephemeral=True)

    def _begun(self, record: Record, stat: ZnodeStat) -> Stored:
        """Write the token of a grant that has landed.

        If that fails, each reader takes the token from the holder's znode, and writes it with the next change. A
        process that has changed the record since has already done so.
        """
        granted = _numbered(record, stat.mzxid)
        body = granted.encode()
        with suppress(RecordChanged, StoreError):
            path = self._path(record.lock)
            stat = self._commit(record.lock, lambda change: change.set_data(path, body, version=stat.version))
        return Stored(granted, stat.version, is_alive=True)

    def _check_session(self, record: Record) -> None:
        granted_s = self._session.granted_s()
        if record.holder is not None and granted_s < record.holder.lease_s:
            raise SettingError(
                f"{PREFIX}lease.seconds",
                f"{record.holder.lease_s:g} is more than the {granted_s:g} s after which ZooKeeper ends the session; "
                "set it to less, or raise maxSessionTimeout of the ensemble",
            )

    # -- requests ----------------------------------------------------------------------------------------------------

    def _get(self, lock: str) -> tuple[bytes, ZnodeStat] | None:
        """Return the latest state of the ensemble: `sync` first brings a lagging server up to date."""
        path = self._path(lock)
        try:
            reply: tuple[bytes, ZnodeStat] = self._session.ask(
                lambda client: [client.sync_async(path), client.get_async(path)]
            )
        except NoNodeError:
            return None
        return reply

    def _commit(self, lock: str, add: Callable[[TransactionRequest], None]) -> ZnodeStat:
        """Send a transaction, and return the stat of the znode that it has set."""

        def send(client: KazooClient) -> list[Any]:
            transaction = client.transaction()
            add(transaction)
            return [transaction.commit_async()]

        results = self._session.ask(send)
        if any(isinstance(result, (BadVersionError, NodeExistsError, NoNodeError)) for result in results):
            raise RecordChanged(lock)
        if errors := [result for result in results if isinstance(result, Exception)]:
            raise StoreError(
                f"ZooKeeper refuses to change the record of {lock}: {errors!r}",
                denied=any(isinstance(error, NoAuthError) for error in errors),
            )
        return next(result for result in results if isinstance(result, ZnodeStat))

    def _landed(self, lock: str, body: bytes, after: Stored | None) -> ZnodeStat:
        """Return the record's stat if a write without an answer has landed.

        Raises `RecordChanged` if another write is in its place, `StoreError` if it may still land, or was overwritten.
        """
        reply = self._get(lock)
        if reply is not None and reply[0] == body:
            return reply[1]
        if reply is not None and reply[1].version == _number(after) + 1:
            raise RecordChanged(lock)
        raise StoreError(f"ZooKeeper does not tell whether the record of {lock} was changed")

    # -- changes -----------------------------------------------------------------------------------------------------

    def wait(self, last: Stored | None, timeout_s: float) -> None:
        until_s = time.monotonic() + timeout_s
        before = self._events
        with suppress(StoreError):
            if last is not None and self._has_changed(last, timeout_s):
                return
        with self._something:
            self._something.wait_for(lambda: self._events != before, max(0.0, until_s - time.monotonic()))

    def _has_changed(self, last: Stored, timeout_s: float) -> bool:
        """Watch the holder's znode, which ends with its turn, or the record of a free lock. So a waiter does not wake
        for renewals, nor for jobs that join. kazoo keeps one watcher per path, however often it is set.
        """
        if last.record.holder is not None and last.is_alive:
            return (
                self._session.ask(self._watching(self._node(last.record.lock, last.record.holder)), timeout_s) is None
            )
        stat = self._session.ask(self._watching(self._path(last.record.lock)), timeout_s)
        return stat is None or stat.version != last.version

    def _watching(self, path: str) -> Callable[[KazooClient], list[Any]]:
        return lambda client: [client.exists_async(path, watch=self._happened)]

    def _happened(self, _: object) -> None:
        with self._something:
            self._events += 1
            self._something.notify_all()

    # -- the rest ----------------------------------------------------------------------------------------------------

    def locks(self) -> Iterator[str]:
        try:
            yield from sorted(self._session.ask(lambda client: [client.get_children_async(self._root)]))
        except NoNodeError:
            return

    def listen(self, listener: Callable[[Connection], None]) -> None:
        self._session.listen(listener)

    def close(self) -> None:
        self._session.close()

    def _path(self, lock: str) -> str:
        return f"{self._root}/{lock}"

    def _node(self, lock: str, holder: Holder) -> str:
        return f"{self._path(lock)}/{holder.nonce}"


def _is_grant(record: Record, after: Stored | None) -> bool:
    """Return whether a change begins a grant: each has its own nonce and token."""
    before = None if after is None else after.record.holder
    now = record.holder
    return now is not None and (before is None or (now.nonce, now.token) != (before.nonce, before.token))


def _numbered(record: Record, czxid: int) -> Record:
    """Set a grant's token. It only grows, even if the records come from an ensemble that had counted further."""
    return with_token(record, max(record.token, czxid))


def _number(after: Stored | None) -> int:
    """Return the znode's version that a change requires; a znode that the same transaction creates has 0."""
    return 0 if after is None else int(str(after.version))
