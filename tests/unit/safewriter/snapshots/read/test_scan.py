"""An iteration yields the keys of a range in order, from all shards that may have some."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.snapshots.errors import KeyRangeError, ShardDamagedError
from safewriter.snapshots.format.encoding import KeyEncoding
from safewriter.snapshots.read.reader import SnapshotReader
from tests.support.snapshots import PREFIX, build

if TYPE_CHECKING:
    from tests.unit.safewriter.snapshots.conftest import World

ROWS = {number * 1000: b"%d" % number for number in range(300)}


def reader(world: World) -> SnapshotReader:
    return SnapshotReader(PREFIX, open_store=world.bucket.opened)


@pytest.mark.parametrize(
    ("start", "stop"), [(None, None), (5000, None), (None, 5000), (5000, 200_001), (5001, 5002), (7000, 7000), (9, 3)]
)
def test_keys_come_in_order_within_the_range(world: World, start: int | None, stop: int | None) -> None:
    """Its first key is in it, its end is not; each key has its value."""
    world.publish("r", ROWS)
    with reader(world) as one:
        found = list(one.scan(start, stop))
    assert found == [
        (key, value) for key, value in ROWS.items() if (start is None or key >= start) and (stop is None or key < stop)
    ]


@pytest.mark.parametrize(
    ("encoding", "rows"),
    [
        (KeyEncoding.UTF8, {"a": b"1", "b": b"2", "ä": b"3"}),
        (KeyEncoding.RAW, {b"\x00": b"1", b"\xff": b"2", b"\xffa": b"3"}),
        (KeyEncoding.U32BE, {0: b"1", 256: b"2", 2**32 - 1: b"3"}),
    ],
)
def test_keys_come_as_get_takes_them(world: World, encoding: KeyEncoding, rows: dict[Any, bytes]) -> None:
    """Texts in the order of their bytes."""
    world.publish("r", rows, encoding=encoding)
    second, third = list(rows)[1:]
    with reader(world) as one:
        assert dict(one.scan()) == rows
        assert [key for key, _ in one.scan(second)] == [second, third]
        assert all(one.get(key) == value for key, value in one.scan(None, third))


def test_a_bound_may_be_longer_than_any_key(world: World) -> None:
    """SQLite takes no such parameter."""
    world.publish("r", {"a": b"1", "b": b"2"}, encoding=KeyEncoding.UTF8)
    with reader(world) as one:
        assert list(one.scan("a" * 2_000_000)) == [("b", b"2")]
        assert list(one.scan(None, "a" * 2_000_000)) == [("a", b"1")]
        with pytest.raises(KeyRangeError, match="neither text nor bytes"):
            one.scan(1)


def test_a_shard_whose_keys_are_elsewhere_is_not_fetched(world: World) -> None:
    """By its lowest and highest key in the manifest, if it says them as keys."""
    found = build(world.folder, ROWS, "r", created=world.now)
    bounds = [(0, 10), (10, 20), (20, 30), (None, None), ("x", "y"), (40, 50)]
    shards = [
        replace(shard, min_key=low, max_key=high) for shard, (low, high) in zip(found.shards[:6], bounds, strict=True)
    ]
    world.publisher.publish(replace(found, shards=tuple(shards)), world.publisher.base())
    with reader(world) as one:
        list(one.scan(20, 40))
    fetched = {key.split("db=")[1][:5] for key in world.bucket.shards_read()}
    assert fetched == {f"{shard.db_id:05d}" for shard in (shards[1], shards[2], shards[3], shards[4])}


def test_an_iteration_stays_with_its_snapshot_and_may_change_its_thread(world: World) -> None:
    """A refresh and reads between its rows change nothing."""
    world.publish("first", ROWS)
    with reader(world) as one:
        rows = one.scan()
        begun = [next(rows) for _ in range(3)]
        world.publish("second", {1: b"new"})
        assert one.refresh()
        assert one.get(1) == b"new"
        rest: list[Any] = []
        thread = threading.Thread(target=lambda: rest.extend(rows))
        thread.start()
        thread.join()
    assert begun + rest == list(ROWS.items())


def test_a_damaged_shard_ends_an_iteration(world: World) -> None:
    """No row is left out in silence."""
    ref = world.publish("r", ROWS)
    shard = world.source.manifest(ref).shards[3]
    world.folder.put(shard.db_url.removeprefix(world.folder.uri("")) + "/shard.db", b"x" * shard.db_bytes)
    with reader(world) as one, pytest.raises(ShardDamagedError):
        list(one.scan())
