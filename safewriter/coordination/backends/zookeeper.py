"""Locks on ZooKeeper: a znode for each record, and below it an ephemeral znode for the holder's session.

`/ROOT/LOCK` holds the record. `/ROOT/LOCK/NONCE` stands for the holder: ZooKeeper deletes it when the session ends. A
lease writes the first and creates the second in one transaction. That transaction's number (the czxid of the new znode)
is the token: ZooKeeper counts all changes, and its count outlives sessions and restarts.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, cast

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

__all__ = ["ZooKeeperBackend"]


class _Version(NamedTuple):
    """`number`: how often the record was written. `turns`: the transaction in which a turn began or ended last."""

    number: int
    turns: int

    @classmethod
    def of(cls, stat: ZnodeStat) -> _Version:
        return cls(stat.version, stat.pzxid)


class ZooKeeperBackend:
    """Locks below one znode, in one session of this process. `hosts` is `host:port[,host:port]`.

    Parameters
    ----------
    lease_s
        The session timeout: after this many seconds without a message from this process ZooKeeper ends its leases.
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
            return Stored(record, _Version.of(stat))
        if not stat.numChildren:
            return Stored(record, _Version.of(stat), is_alive=False)
        node = self._node(lock, record.holder.nonce)
        holder = self._session.ask(lambda client: [client.exists_async(node)])
        # A turn that has ended since the record was read is no dead one; what follows from it is refused.
        return Stored(record if holder is None else _numbered(record, holder.czxid), _Version.of(stat), is_alive=True)

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
        return Stored(record, _Version.of(stat), is_alive)

    def _change(self, change: TransactionRequest, record: Record, body: bytes, after: Stored | None) -> None:
        """Add the operations of a write. Each of the three parts fails the transaction if another job was faster."""
        path = self._path(record.lock)
        if after is None:
            change.create(path)
        begins = _is_grant(record, after)
        if after is not None and after.record.holder is not None and after.is_alive is not False:
            node = self._node(record.lock, after.record.holder.nonce)
            if record.holder is None or begins:
                change.delete(node)
            else:
                change.check(node, version=-1)
        if record.holder is not None and begins:
            change.create(self._node(record.lock, record.holder.nonce), ephemeral=True)
        change.set_data(path, body, version=_number(after))  # last: its answer counts the changes above

    def _begun(self, record: Record, stat: ZnodeStat) -> Stored:
        """Write the token of a lease that has landed.

        If that fails, each reader takes the token from the holder's znode, and writes it with the next change. A
        process that has changed the record since has already done so.
        """
        granted = _numbered(record, stat.mzxid)
        body = granted.encode()
        with suppress(RecordChanged, StoreError):
            path = self._path(record.lock)
            stat = self._commit(record.lock, lambda change: change.set_data(path, body, version=stat.version))
        return Stored(granted, _Version.of(stat), is_alive=True)

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

    def wait(self, last: Stored | None, timeout_s: float, after: str = "") -> None:
        """Watch the turn that has to end first: the znode of the holder, or that of the waiter `after`, which is not
        there yet. So the end of a turn wakes one waiter, and renewals and jobs that join wake none.
        """
        until_s = time.monotonic() + timeout_s
        for _ in range(2):  # until that turn begins, and until it ends
            events, is_there = self._events, True
            with suppress(StoreError):
                if last is not None:
                    is_there, is_over = self._look(last, after, timeout_s)
                    if is_over:
                        return
            if not self._sleep(events, until_s) or is_there:
                return

    def _look(self, last: Stored, after: str, timeout_s: float) -> tuple[bool, bool]:
        """Watch a znode: return whether it is there, and whether there is nothing to wait for. Without a turn to wait
        for it is that of the record. kazoo keeps one watcher per path, however often it is set.
        """
        record, holder = last.record, last.record.holder
        nonce = after or (holder.nonce if holder is not None and last.is_alive else "")
        path = self._node(record.lock, nonce) if nonce else self._path(record.lock)
        stat = self._session.ask(lambda client: [client.exists_async(path, watch=self._happened)], timeout_s)
        if nonce and (stat is not None or not after):
            return stat is not None, stat is None
        if nonce:  # the turn has not begun yet, unless it is over
            stat = self._session.ask(lambda client: [client.exists_async(self._path(record.lock))], timeout_s)
            return False, stat is None or stat.pzxid != _version(last).turns
        return True, stat is None or stat.version != _version(last).number

    def _sleep(self, events: int, until_s: float) -> bool:
        """Return whether something happened after the first `events` events."""
        with self._something:
            return self._something.wait_for(lambda: self._events != events, max(0.0, until_s - time.monotonic()))

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

    def _node(self, lock: str, nonce: str) -> str:
        return f"{self._path(lock)}/{nonce}"


def _is_grant(record: Record, after: Stored | None) -> bool:
    """Return whether a change begins a lease: each has its own nonce and token."""
    before = None if after is None else after.record.holder
    now = record.holder
    return now is not None and (before is None or (now.nonce, now.token) != (before.nonce, before.token))


def _numbered(record: Record, czxid: int) -> Record:
    """Set a lease's token. It only grows, even if the records come from an ensemble that had counted further."""
    return with_token(record, max(record.token, czxid))


def _number(after: Stored | None) -> int:
    """Return the znode's version that a change requires; a znode that the same transaction creates has 0."""
    return 0 if after is None else _version(after).number


def _version(stored: Stored) -> _Version:
    return cast("_Version", stored.version)
