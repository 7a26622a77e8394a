"""A settler removes the objects of a build that its manifest does not name, and no other build's, within its time."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from safewriter.objects.store import ListedObject, StoreError, Upload
from safewriter.snapshots.settle.leftovers import BuildId
from safewriter.tables.table import UndecidableError
from tests.support.memory_store import MemoryObjectStore
from tests.support.snapshots import as_slatedb, build
from tests.unit.safewriter.snapshots.conftest import ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.safewriter.snapshots.conftest import World

NAMES = BuildId("r.1", "b" * 16, "shards", "runs", datetime(2026, 1, 1, tzinfo=UTC).isoformat())

MOMENT = datetime(2026, 11, 23, tzinfo=UTC)
RUNNING = json.dumps({"status": "running"}).encode()


def shard(attempt: str, run_id: str = "r.1") -> str:
    return f"shards/run_id={run_id}/db=00000/attempt={attempt}/shard.db"


@pytest.fixture
def store() -> MemoryObjectStore:
    store = MemoryObjectStore()
    for key in (
        shard(f"00-{NAMES.build}-won"),
        shard(f"01-{NAMES.build}-lost"),
        shard(f"00-{'c' * 16}-another"),
        shard(f"00-{NAMES.build}-won", run_id="rx1"),
    ):
        store.put(key, b"shard")
    return store


def keys(store: MemoryObjectStore) -> set[str]:
    return {listed.key for listed in store.list("")}


def test_what_the_manifest_names_stays(store: MemoryObjectStore) -> None:
    """The objects of other builds and other runs also stay."""
    won = shard(f"00-{NAMES.build}-won")
    url = store.uri(won.removesuffix("/shard.db"))
    before = keys(store)
    assert NAMES.remove(store, {url}) == 1
    assert keys(store) == before - {shard(f"01-{NAMES.build}-lost")}


def test_nothing_is_removed_beside_a_manifest_whose_shards_are_elsewhere(store: MemoryObjectStore) -> None:
    """Its URLs do not fit the store, so it is unknown which objects it needs."""
    before = keys(store)
    for urls in ({"s3://elsewhere/a"}, {store.uri(shard(f"00-{NAMES.build}-gone").removesuffix("/shard.db"))}):
        with pytest.raises(StoreError, match="none is deleted"):
            NAMES.remove(store, urls)
    assert keys(store) == before


def test_a_manifest_may_name_shards_of_earlier_builds_only(store: MemoryObjectStore) -> None:
    """An incremental build has taken all over; what its own tasks have left goes."""
    another = shard(f"00-{'c' * 16}-another")
    before = keys(store)
    assert NAMES.remove(store, {store.uri(another.removesuffix("/shard.db"))}) == 2
    assert before - keys(store) == {shard(f"00-{NAMES.build}-won"), shard(f"01-{NAMES.build}-lost")}


def test_of_a_build_that_is_not_published_all_goes(store: MemoryObjectStore) -> None:
    """Its manifest is removed, too."""
    store.put(NAMES.manifest_key, b"manifest")
    before = keys(store)
    assert NAMES.remove(store, None) == 3
    assert before - keys(store) == {
        NAMES.manifest_key,
        shard(f"00-{NAMES.build}-won"),
        shard(f"01-{NAMES.build}-lost"),
    }


def test_time_is_asked_for_between_batches(store: MemoryObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the time runs out, whole batches are removed, and the error says how many objects."""
    monkeypatch.setattr("safewriter.objects.store.PAGE", 1)
    answers = iter([True, True, False])
    before = keys(store)
    with pytest.raises(StoreError, match="out of time while cleaning up, 1 removed"):
        NAMES.remove(store, None, lambda: next(answers))
    assert len(before - keys(store)) == 1


def test_objects_go_while_they_are_listed(store: MemoryObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not all keys are held in memory; the time is also checked if no key is the build's."""
    monkeypatch.setattr("safewriter.objects.store.PAGE", 1)
    names = keys(store)
    done: list[str] = []

    def listed(_: str, **_more: object) -> Iterator[ListedObject]:
        for key in sorted(names):
            done.append("listed")
            yield ListedObject(key, 1, MOMENT)

    monkeypatch.setattr(store, "list", listed)
    monkeypatch.setattr(store, "delete_all", lambda _: done.append("deleted"))
    NAMES.remove(store, None)
    assert "listed" in done[done.index("deleted") :]
    another = BuildId.draw("r.1", "shards", "runs", MOMENT)
    with pytest.raises(StoreError, match="out of time"):
        another.remove(store, None, lambda: False)


def test_without_time_the_work_is_left_to_others(store: MemoryObjectStore) -> None:
    """The error says that the time is over."""
    with pytest.raises(StoreError, match="out of time"):
        NAMES.remove(store, None, lambda: False)


@pytest.mark.parametrize("run_id", ["r", "nightly+1"])
def test_a_build_removes_what_is_its_own(run_id: str) -> None:
    """Other builds of the run, and runs whose names only begin alike, keep their objects and uploads."""
    store = MemoryObjectStore()
    names = BuildId.draw(run_id, "shards", "runs", MOMENT)
    own = f"shards/run_id={run_id}/db=1/attempt=00-{names.build}-a/shard.db"
    others = [
        f"shards/run_id={run_id}/db=1/attempt=00-{'f' * 16}-a/shard.db",
        f"shards/run_id={run_id}2/db=1/attempt=00-{names.build}-a/shard.db",
    ]
    for key in (own, *others):
        store.put(key, b"")
        store.begin_upload(Upload(key, "id"))
    assert names.remove(store, None) == 1
    assert [listed.key for listed in store.list("")] == others
    assert [upload.key for upload in store.uploads("")] == others


def test_a_record_that_somebody_else_ends_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process changes it between the read and the write."""
    store = MemoryObjectStore()
    names = BuildId.draw("r", "shards", "runs", MOMENT)
    store.put(names.record_key, RUNNING)
    get = store.get

    def meanwhile(key: str, **bound: int) -> object:
        found = get(key, **bound)
        store.put(key, b"ended")
        return found

    monkeypatch.setattr(store, "get", meanwhile)
    names.end_record(store, MOMENT, published=False)
    monkeypatch.undo()
    found = store.get(names.record_key)
    assert found is not None
    assert found.body == b"ended"


def test_shards_of_several_objects_stay_or_go_as_a_whole(world: World) -> None:
    """For SlateDB, the manifest's shards stay; objects and uploads of other attempts are removed."""
    manifest = as_slatedb(world.folder, build(world.folder, ROWS, "r", created=world.now))
    named = world.keys("shards/")
    lost = "shards/run_id=r/db=00000/attempt=01-buildr-lost"
    for name in ("manifest/1.manifest", "compacted/1.sst"):
        world.folder.put(f"{lost}/{name}", b"lost")
    world.bucket.begin_upload(Upload(f"kv/{lost}/compacted/2.sst", "id", world.now))
    names = BuildId("r", "buildr", "shards", "runs", world.now.isoformat())
    assert names.remove(world.folder, manifest.folders) == 2
    assert world.keys("shards/") == named
    assert list(world.folder.uploads("shards/")) == []
    assert names.remove(world.folder, None) == len(named) == 2 * len(manifest.shards)
    assert world.keys("shards/") == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("build", ".*"),
        ("build", "(a|a|[^-])*-X"),
        ("build", "b" * 15),
        ("run_id", ""),
        ("run_id", "r/db=00000"),
        ("shard_prefix", "other/shards"),
        ("shard_prefix", ".."),
        ("runs", ""),
        ("created_at", "yesterday"),
    ],
)
def test_names_that_no_build_has_are_refused(name: str, value: str) -> None:
    """A document that brings another expression or place would choose which objects go."""
    assert BuildId.read(NAMES.document()) == NAMES
    with pytest.raises(UndecidableError, match="which no build is called"):
        BuildId.read({**NAMES.document(), name: value})
    with pytest.raises(UndecidableError, match="which no build is called"):
        BuildId.read({one: text for one, text in NAMES.document().items() if one != name})
