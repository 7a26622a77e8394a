from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from safewriter.objects.store import StoreError
from safewriter.snapshots.keep.leftovers import BuildId
from tests.support.memory_store import MemoryObjectStore
from tests.unit.safewriter.snapshots.format.test_manifest import MANIFEST, SHARD

NAMES = BuildId("r.1", "b" * 16, "shards", "runs", datetime(2026, 1, 1, tzinfo=UTC).isoformat())


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
    """And whatever belongs to another build, or another run."""
    won = shard(f"00-{NAMES.build}-won")
    url = store.uri(won.removesuffix("/shard.db"))
    before = keys(store)
    assert NAMES.remove(store, replace(MANIFEST, shards=(replace(SHARD, db_url=url),))) == 1
    assert keys(store) == before - {shard(f"01-{NAMES.build}-lost")}


def test_nothing_is_removed_beside_a_manifest_whose_shards_are_elsewhere(store: MemoryObjectStore) -> None:
    """Its names and those of the store do not fit, so nobody knows what it needs."""
    before = keys(store)
    with pytest.raises(StoreError, match="none is deleted"):
        NAMES.remove(store, replace(MANIFEST, shards=(replace(SHARD, db_url="s3://elsewhere/a"),)))
    assert keys(store) == before


def test_of_a_build_that_is_not_published_all_goes(store: MemoryObjectStore) -> None:
    """Its manifest, too."""
    store.put(NAMES.manifest_key, b"manifest")
    before = keys(store)
    assert NAMES.remove(store, None) == 3
    assert before - keys(store) == {
        NAMES.manifest_key,
        shard(f"00-{NAMES.build}-won"),
        shard(f"01-{NAMES.build}-lost"),
    }


def test_without_time_the_work_is_left_to_others(store: MemoryObjectStore) -> None:
    """It says how far it was."""
    with pytest.raises(StoreError, match="out of time"):
        NAMES.remove(store, None, lambda: False)
