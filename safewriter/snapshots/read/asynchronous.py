"""A reader of snapshots for asyncio. Its calls run in threads: SQLite and boto3 block."""

from __future__ import annotations

import asyncio
import itertools
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from safewriter.snapshots.checks import check_count
from safewriter.snapshots.read.reader import SnapshotReader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping

    from safewriter.snapshots.format.encoding import Key
    from safewriter.snapshots.format.manifest import Manifest

__all__ = ["AsyncSnapshotReader"]

_T = TypeVar("_T")
_ROWS: Final = 1000


class AsyncSnapshotReader:
    """A `SnapshotReader` whose calls do not block the event loop; open it by `open`, close it by `async with`.

    A call costs a switch between threads, which takes longer than a `get` whose shard is on this machine: use
    `multi_get` for several keys, or `sync` where a `get` may block for a moment. A cancelled call ends in its thread.
    """

    def __init__(self, reader: SnapshotReader, threads: int) -> None:
        self.sync: Final = reader
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="soal-snapshot")

    @classmethod
    async def open(cls, s3_prefix: str, *, threads: int = 8, **how: Any) -> Self:  # noqa: ANN401 - of SnapshotReader
        """Open the current snapshot. `threads`: how many calls run at once. `how`: parameters of `SnapshotReader`.

        Raises as it does.
        """
        check_count("threads", threads)
        return cls(await asyncio.to_thread(partial(SnapshotReader, s3_prefix, **how)), threads)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def manifest(self) -> Manifest:
        """The snapshot that is read."""
        return self.sync.manifest

    async def get(self, key: Key, *, routing_context: Mapping[str, object] | None = None) -> bytes | None:
        """Return the value of a key, as `SnapshotReader.get` does."""
        return await self._run(partial(self.sync.get, key, routing_context=routing_context))

    async def multi_get(
        self, keys: Iterable[Key], *, routing_context: Mapping[str, object] | None = None
    ) -> dict[Key, bytes | None]:
        """Return the values of keys, as `SnapshotReader.multi_get` does, by one thread."""
        return await self._run(partial(self.sync.multi_get, list(keys), routing_context=routing_context))

    async def scan(self, start: Key | None = None, stop: Key | None = None) -> AsyncIterator[tuple[Key, bytes | None]]:
        """Yield keys with values, as `SnapshotReader.scan` does; a thread reads a thousand at once."""
        rows = await self._run(partial(self.sync.scan, start, stop))
        while block := await self._run(lambda: list(itertools.islice(rows, _ROWS))):
            for row in block:
                yield row

    async def refresh(self) -> bool:
        """Switch to the snapshot that is current now, as `SnapshotReader.refresh` does."""
        return await self._run(self.sync.refresh)

    async def close(self) -> None:
        """Wait for the calls that run, then close the reader."""
        await asyncio.to_thread(self._pool.shutdown)
        self.sync.close()

    async def _run(self, call: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)
