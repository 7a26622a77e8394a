"""The shards of one snapshot, opened at their first use: a file for all threads, a connection for each thread.

They close by reference count. A connection belongs to its thread, and holds the shard's file; its last reference goes
when the thread ends, when the reader drops the snapshot, or when its shard has to make room. A read in progress refers
to its connection, so none of these breaks it, and reads need no lock.
"""

from __future__ import annotations

import sqlite3
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Final

from safewriter.snapshots.errors import ReaderStateError, ShardDamagedError
from safewriter.snapshots.format import database
from safewriter.snapshots.format.shard_file import TABLES
from safewriter.snapshots.read.cache import CachedFile, name_of, usable
from safewriter.snapshots.read.fetch import fetch
from safewriter.snapshots.read.source import url_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from safewriter.snapshots.format.manifest import Shard
    from safewriter.snapshots.read.cache import CacheFolder
    from safewriter.snapshots.read.source import Source

__all__ = ["SELECT", "OpenShard", "Shards"]

SELECT: Final = "SELECT v FROM kv WHERE k = ?"
_REPAIR_S: Final = 60.0
_MMAP_BYTES: Final = 1 << 40
"""SQLite maps the file into memory, as far as its own limit allows."""


class OpenShard:
    """A connection of one thread. A caller of `execute` must keep a reference to this object until it has the row.

    A `sqlite3.Connection` would not close by itself: it refers to itself through its cache of statements.
    """

    __slots__ = ("_connection", "_file", "db_id", "execute", "longest")

    def __init__(self, connection: sqlite3.Connection, file: CachedFile, db_id: int) -> None:
        self._connection, self._file, self.db_id = connection, file, db_id
        self.execute = connection.execute
        self.longest = database.longest(connection)

    def __del__(self) -> None:
        self._connection.close()


class _Thread:
    """The shards that one thread has open."""

    def __init__(self) -> None:
        self.shards: dict[int, OpenShard] = {}


class Shards:
    """`local.shards` has this thread's open shards; `open` opens another one."""

    def __init__(
        self,
        shards: Mapping[int, Shard],
        source: Source,
        cache: CacheFolder,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        fetched: Callable[[int], object] = lambda _: None,
    ) -> None:
        self.local: Any = threading.local()
        self._shards, self._source, self._cache, self._sleep = shards, source, cache, sleep
        self._clock, self._fetched_size = clock, fetched
        self._damage: dict[int, str] = {}
        """What was wrong with each shard's file, until it is fetched again."""
        self._repaired_s: dict[int, float] = {}
        """When each damaged shard was last fetched again."""
        self._guard = threading.Lock()
        self._fetching = {db_id: threading.Lock() for db_id in shards}
        self._files: dict[int, CachedFile] = {}
        self._threads: weakref.WeakSet[_Thread] = weakref.WeakSet()

    def open(self, db_id: int) -> OpenShard | None:
        """Open a shard for this thread; None if it has no rows.

        Raises `ReaderStateError` or `ShardDamagedError` if it cannot be read, `StoreError`.
        """
        shard = self._shards.get(db_id)
        if shard is None:
            return None
        file = self._file(shard)
        opened = self._connected(shard, file)
        with self._guard:
            if self._files.get(db_id) is file:  # else it was dropped meanwhile, to make room
                self._of_thread()[db_id] = opened
        return opened

    def connect(self, db_id: int) -> OpenShard | None:
        """Open a shard for the caller alone, in whatever threads; raises as `open` does."""
        shard = self._shards.get(db_id)
        return None if shard is None else self._connected(shard, self._file(shard))

    def _of_thread(self) -> dict[int, OpenShard]:
        """Return this thread's open shards."""
        try:
            shards: dict[int, OpenShard] = self.local.shards
        except AttributeError:
            thread = self.local.thread = _Thread()
            shards = self.local.shards = thread.shards
            self._threads.add(thread)
        return shards

    def _connected(self, shard: Shard, file: CachedFile) -> OpenShard:
        try:
            # The last reference to the connection may be in another thread.
            connection = database.of_file(file.path, TABLES, f"mmap_size = {_MMAP_BYTES}")
            opened = OpenShard(connection, file, shard.db_id)
            if not file.is_checked:
                database.check_pages(connection, TABLES)
                file.is_checked = True
            connection.execute(SELECT, (b"",)).fetchone()
            database.unlimited(connection)
        except sqlite3.Error as error:
            if isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, FileNotFoundError):
                with usable(url_of(shard)):
                    raise error.__cause__ from None
            raise self.damaged(shard.db_id, error) from error
        return opened

    def damaged(self, db_id: int, error: object) -> ShardDamagedError:
        """Close an unreadable shard and remove its file, so that the next read fetches it again; return the error."""
        shard = self._shards[db_id]
        self._drop(db_id)
        with usable(url_of(shard)):
            self._cache.remove(name_of(shard))
        self._damage[db_id] = (
            f"{url_of(shard)} is no shard that this code can read: {error}. The next reading fetches it again, but only"
            " once a minute"
        )
        return ShardDamagedError(self._damage[db_id])

    def _file(self, shard: Shard) -> CachedFile:
        """Return the file of a shard. It is fetched once, however many threads need it."""
        with self._guard:
            file = self._files.get(shard.db_id)
        if file is not None:
            return file
        with self._fetching[shard.db_id]:
            with self._guard:
                file = self._files.get(shard.db_id)
            if file is None:
                with usable(url_of(shard)):
                    size = shard.db_bytes if shard.sha256 else None
                    file = self._cache.find(name_of(shard), size, shard.sha256)
                    file = file or self._fetched(shard)
                with self._guard:
                    self._files[shard.db_id] = file
        return file

    def _fetched(self, shard: Shard) -> CachedFile:
        self._check_damage(shard.db_id)
        free = self._cache.free_bytes()
        if shard.db_bytes > free:
            raise ReaderStateError(
                f"{url_of(shard)} has {shard.db_bytes:,} bytes by its manifest (db_bytes), and the folder of the cache"
                f" has room for {free:,}. Take another folder, or go back to another snapshot"
            )
        while self._cache.make_room(shard.db_bytes) and self._close_one():
            pass
        with self._cache.part(shard.db_bytes) as part:
            try:
                fetch(self._source, shard, part, self._sleep, most_bytes=self._cache.limit_bytes)
            except ShardDamagedError as error:
                self._damage[shard.db_id] = str(error)
                raise
            self._fetched_size(part.tell())
            return self._cache.keep(part, name_of(shard))

    def _check_damage(self, db_id: int) -> None:
        """Raise the last error of a damaged shard again, instead of fetching it a second time within a minute: it may
        be damaged in the store, and have gigabytes.
        """
        damage = self._damage.get(db_id)
        if damage is not None:
            if self._clock() - self._repaired_s.get(db_id, -_REPAIR_S) < _REPAIR_S:
                raise ShardDamagedError(damage)
            self._repaired_s[db_id] = self._clock()
            del self._damage[db_id]

    def _close_one(self) -> bool:
        """Close the shard that was opened first, to make room; return whether there was one."""
        with self._guard:
            oldest = next(iter(self._files), None)
        if oldest is not None:
            self._drop(oldest)
        return oldest is not None

    def _drop(self, db_id: int) -> None:
        with self._guard:
            self._files.pop(db_id, None)
            dropped = [thread.shards.pop(db_id, None) for thread in self._threads]
        del dropped  # closed outside the lock
