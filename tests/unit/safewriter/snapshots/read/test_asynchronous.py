"""The reader for asyncio gives what the other one gives, and blocks no other task."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.snapshots.errors import ConfigValidationError, ReaderStateError
from safewriter.snapshots.read.asynchronous import AsyncSnapshotReader
from tests.support.snapshots import PREFIX
from tests.unit.safewriter.snapshots.conftest import ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.safewriter.snapshots.conftest import World


def test_it_gives_what_the_other_reader_gives(world: World) -> None:
    """Values, many at once, a range in blocks, and the next snapshot."""
    world.publish("first")
    many = {number: b"%d" % number for number in range(2500)}

    async def read() -> None:
        async with await AsyncSnapshotReader.open(PREFIX, open_store=world.bucket.opened) as reader:
            assert await asyncio.gather(*map(reader.get, ROWS)) == list(ROWS.values())
            world.publish("second", many)
            assert await reader.refresh()
            assert reader.manifest.run_id == "second"
            assert await reader.multi_get([2, -0, 9999]) == {2: b"2", 0: b"0", 9999: None}
            assert [row async for row in reader.scan(10)] == list(many.items())[10:]
        with pytest.raises(ReaderStateError, match="closed"):
            reader.sync.get(1)
        assert not [one for one in threading.enumerate() if one.name.startswith("soal-snapshot")]

    asyncio.run(read())


def test_a_fetch_blocks_no_other_task(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shard is fetched until another task of the loop lets it end."""
    world.publish("r")
    stream, began, may_end = world.bucket.stream, threading.Event(), threading.Event()

    def slow(key: str) -> Iterator[bytes] | None:
        began.set()
        assert may_end.wait(60)
        return stream(key)

    monkeypatch.setattr(world.bucket, "stream", slow)

    async def other() -> None:
        await asyncio.to_thread(began.wait, 60)
        may_end.set()

    async def read() -> Any:
        async with await AsyncSnapshotReader.open(PREFIX, open_store=world.bucket.opened, threads=1) as reader:
            return await asyncio.gather(reader.get(1), other())

    assert asyncio.run(read()) == [b"1", None]


def test_what_cannot_be_opened_raises_as_the_other_reader_does(world: World) -> None:
    """Also a number of threads that no pool has."""
    with pytest.raises(ReaderStateError, match="nothing was published"):
        asyncio.run(AsyncSnapshotReader.open(PREFIX, open_store=world.bucket.opened))
    with pytest.raises(ConfigValidationError, match="threads is 0"):
        asyncio.run(AsyncSnapshotReader.open(PREFIX, threads=0))
