"""A settler reads and extends a Delta log without a JVM: gaps, damage, recreated tables, bounds of its effort."""

from __future__ import annotations

import json
import tracemalloc
from threading import Barrier, current_thread, main_thread
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.objects import ListedObject, StoredObject, StoreError
from safewriter.objects.store import PAGE
from safewriter.tables.delta.commit import Signature
from safewriter.tables.delta.history import DeltaHistory, _Listing
from safewriter.tables.table import UndecidableError
from tests.support.memory_store import MemoryObjectStore
from tests.unit.safewriter.delta_log import DeltaLog, File, body_of, creation, key_of
from tests.unit.safewriter.record.samples import attempt
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator


def history(world: World) -> DeltaHistory:
    return DeltaHistory(world.lake, world.clock)


def always() -> bool:
    return True


# -- reading -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("before", "versions"), [(-1, [0, 1, 2, 3]), (1, [2, 3]), (3, [])])
def test_only_versions_after_the_known_one_are_read(before: int, versions: list[int]) -> None:
    """The cost does not grow with the table's age."""
    world = World()
    world.append_foreign()
    world.append_foreign()

    found = history(world).since(attempt(version_before=before))

    assert [commit.version for commit in found] == versions


def test_a_long_log_is_fetched_16_versions_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """All versions come in their order, large ones too, and time that runs out ends the reading."""
    world = World()
    for number in range(2, 34):
        more = "x" * (3000 if number == 20 else 0)
        world.lake.put(key_of(number), body_of([{"commitInfo": {"operation": "WRITE", "more": more}}]))
    monkeypatch.setattr("safewriter.tables.delta.history._WHOLE_MAX_BYTES", 2000)
    together, get, ended = Barrier(16), world.lake.get, False
    fetched: list[str] = []

    def awaited(key: str, *, max_bytes: int | None = None) -> StoredObject | None:
        if current_thread() is not main_thread():
            together.wait(timeout=60)  # all 16 come, or the test fails
            fetched.append(key)
        return get(key, max_bytes=max_bytes)

    monkeypatch.setattr(world.lake, "get", awaited)
    one = DeltaHistory(world.lake, world.clock, may_go_on=lambda: not ended)
    found = one.since(attempt(version_before=1))
    assert [commit.version for commit in found] == list(range(2, 34))
    assert len(fetched) == 32
    ended = True
    assert one.since(attempt(version_before=1)) == found, "they are known"
    with pytest.raises(StoreError, match="out of time"):
        DeltaHistory(world.lake, world.clock, may_go_on=lambda: not ended)._read(_Listing(1, 33))


def test_what_else_lies_in_the_log_is_no_version() -> None:
    """Checkpoints, checksums, compactions and staged commits are skipped."""
    world = World()
    for name in (
        f"{1:020}.checkpoint.parquet",
        f"{2:020}.crc",
        f"{1:020}.{2:020}.compacted.json",
        "_last_checkpoint",
        "_sidecars/x.parquet",
        f"_staged_commits/{2:020}.x.json",
    ):
        world.lake.put(f"_delta_log/{name}", b"not a commit")

    assert [commit.version for commit in history(world).since(attempt(version_before=0))] == [1]


@pytest.mark.parametrize("lost", [2, 3])
def test_a_gap_after_the_known_version_is_said(lost: int) -> None:
    """A missing version may have been ours."""
    world = World()
    for _ in range(3):
        world.append_foreign()
    world.lake.delete(key_of(lost))

    with pytest.raises(UndecidableError, match="log retention"):
        history(world).since(attempt(version_before=1))


def test_a_log_that_begins_too_late_says_how_far_back_it_does_not_reach() -> None:
    """A version if one was asked for, or a time."""
    world = World()
    world.append_foreign()
    world.lake.delete(key_of(0))

    with pytest.raises(UndecidableError, match=r"reach back to version 0 .*: the next one is 1"):
        history(world).since(attempt(version_before=-1))
    with pytest.raises(UndecidableError, match=r"reach back to 1970-01-01 00:00:01 UTC .*: the next one is 1"):
        history(world).since_ms(1_000)
    with pytest.raises(UndecidableError, match=r"reach back to -9{15} ms"):
        history(world).since_ms(-999_999_999_999_999)
    assert history(world).since_ms(2**62) == (), "a time that no calendar has"


def test_a_gap_behind_a_version_that_was_listed_names_the_version() -> None:
    """The log reaches back, and is not whole."""
    world = World()
    world.append_foreign()
    world.append_foreign()
    world.lake.delete(key_of(1))

    with pytest.raises(UndecidableError, match=r"has lost versions after 0 .*: the next one is 2"):
        history(world).since(attempt(version_before=0))


@pytest.mark.parametrize("gone", [(0, 1, 2), (0, 1, 2, 3)])
def test_retention_of_what_came_before_does_not_matter(gone: tuple[int, ...]) -> None:
    """Old versions may be gone, also version 0 with the table's id and the one on which the attempt began."""
    world = World()
    for _ in range(3):
        world.append_foreign()
    for version in gone:
        world.lake.delete(key_of(version))

    found = history(world).since(attempt(version_before=3, table_id="any", modified_ms=world.now_ms))

    assert [commit.version for commit in found] == [4]


def test_a_dropped_table_is_said() -> None:
    """If no version at or after the known one exists, the table is gone."""
    world = World(existing=False)

    with pytest.raises(UndecidableError, match="dropped"):
        history(world).since(attempt(version_before=3))


@pytest.mark.parametrize("version_before", [0, 1])
def test_a_recreated_table_is_said(version_before: int) -> None:
    """Another object at the known version means another table, although the versions look right."""
    world = World()
    world.append_foreign()
    begun = attempt(version_before=version_before, modified_ms=world.now_ms)
    world.sleep(1)
    for version in world.log.versions:
        world.lake.put(key_of(version), world.lake.contents()[key_of(version)])

    with pytest.raises(UndecidableError, match="recreated"):
        history(world).since(begun)


def test_a_table_that_was_replaced_is_the_same_table() -> None:
    """CREATE OR REPLACE gives it another id, before the attempt or after it, and version 0 keeps the first one."""
    world = World()
    world.log.commit(creation(table_id="replaced"))
    begun = attempt(version_before=2, modified_ms=world.now_ms, table_id="replaced")
    world.sleep(1)
    world.log.commit(creation(table_id="replaced again"))

    assert [commit.version for commit in history(world).since(begun)] == [3]


@pytest.mark.parametrize("body", [b"{", b"[1]\n", b'{"txn":{"appId":"x"}}\n', b"\xff\n"])
def test_a_damaged_version_is_a_store_error(body: bytes) -> None:
    """Nothing can be concluded from it, so the outcome is unknown; the settler never crashes."""
    world = World()
    world.lake.put(key_of(2), body)

    with pytest.raises(StoreError, match="is no commit"):
        history(world).since(attempt(version_before=1))


def test_a_version_that_is_listed_and_gone_is_a_store_error() -> None:
    """The log is being cleaned up, or the table dropped; a version that may not be read is an error of its own."""

    class Hidden(MemoryObjectStore):
        def get(self, key: str, *, max_bytes: int | None = None) -> None:
            return None

    store = Hidden()
    DeltaLog(store).create()

    with pytest.raises(StoreError, match="is listed, and is gone"):
        DeltaHistory(store, lambda: 1).since(attempt(version_before=-1))


# -- writing -----------------------------------------------------------------------------------------------------------


def test_a_version_is_written_once() -> None:
    """A slot that is taken is left as it is."""
    world = World()

    assert history(world).append(2, [{"txn": {"appId": "ü", "version": 1}}])
    assert not history(world).append(2, [{"txn": {"appId": "y", "version": 1}}])
    assert world.log.read(2) == [{"txn": {"appId": "ü", "version": 1}}]


def test_the_log_of_an_independent_writer_is_understood() -> None:
    """Other engines order the actions differently, with protocol and metadata first."""
    store = MemoryObjectStore()
    store.create(key_of(0), body_of([*creation(), File("a").add(), {"commitInfo": {"operation": "CREATE TABLE"}}]))

    (commit,) = DeltaHistory(store, lambda: 1).since(attempt(version_before=-1))

    assert (commit.paths, commit.info["operation"]) == ({"a"}, "CREATE TABLE")


def test_what_comes_behind_nothing_comes_behind_the_known_version() -> None:
    """Not at the beginning of the table."""
    world = World()
    world.append_foreign()
    assert [one.version for one in history(world).further((), 1)] == [2]


def test_a_name_that_only_begins_like_a_version_is_none() -> None:
    """Writers leave temporary files beside it."""
    world = World()
    world.lake.put(f"_delta_log/{2:020}.json.tmp", b"x")
    assert [one.version for one in history(world).since(attempt(version_before=0))] == [1]


def test_reading_ends_with_the_time() -> None:
    """A settler waits no longer for a table than the function lives."""
    world = World()
    with pytest.raises(StoreError, match="out of time"):
        DeltaHistory(world.lake, world.clock, may_go_on=lambda: False).since(attempt(version_before=0))


@pytest.mark.parametrize(
    ("hint", "begins"),
    [
        (b'{"version": 7}', [7]),
        (b'{"version": 9}', [9, None]),
        (None, [None]),
        *(
            (damaged, [None])
            for damaged in (
                b"no json",
                b'{"version": 9e999}',
                b'{"version": NaN}',
                b'{"version": -5}',
                b'{"version": "7"}',
                b'{"version": 7, "x": "' + b"x" * (1 << 20) + b'"}',
            )
        ),
    ],
)
def test_what_came_since_a_time_is_listed_from_the_last_checkpoint_on(
    hint: bytes | None, begins: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only if the checkpoint is older; otherwise the whole log is. A damaged hint counts as none."""
    world = World(existing=False)
    since_ms = 0
    for version in range(10):
        world.lake.put(f"_delta_log/{version:020}.json", b'{"commitInfo": {}}')
        if version == 7:
            since_ms = world.clock() + 1000
            world.sleep(60_000)
    if hint is not None:
        world.lake.put("_delta_log/_last_checkpoint", hint)
    listed: list[str] = []
    whole = world.lake.list

    def noted(prefix: str, *, start_after: str = "", at_once: int = PAGE) -> Any:
        listed.append(start_after)
        return whole(prefix, start_after=start_after, at_once=at_once)

    monkeypatch.setattr(world.lake, "list", noted)
    found = DeltaHistory(world.lake, world.clock).since_ms(since_ms)
    assert [commit.version for commit in found] == [8, 9]
    assert listed[0] == (f"_delta_log/{begins[0]:020}" if begins[0] is not None else "")
    assert len(listed) == len(begins)


@pytest.mark.parametrize("near", [2_000, 1_999, 1_000, 2_010])
def test_a_listing_goes_back_only_as_far_as_the_time(monkeypatch: pytest.MonkeyPatch, near: int) -> None:
    """A clean-up knows a version near the oldest file; the log before it may be of any length."""
    world = World(existing=False)
    since_ms = 0
    for version in range(2_001):
        world.lake.put(f"_delta_log/{version:020}.json", b'{"commitInfo": {}}')
        if version == 1_995:
            world.sleep(60)
            since_ms = world.clock()
    listed: list[int] = []
    whole = world.lake.list

    def noted(prefix: str, **more: Any) -> Any:
        entries = [*whole(prefix, **more)]
        listed.append(len(entries))
        return iter(entries)

    monkeypatch.setattr(world.lake, "list", noted)
    found = DeltaHistory(world.lake, world.clock).since_ms(since_ms, near=near)
    assert [commit.version for commit in found] == [1_996, 1_997, 1_998, 1_999, 2_000]
    assert sum(listed) <= (1_001 if near == 1_000 else 123)


def test_a_listing_that_nothing_older_ends_is_that_of_the_whole_log() -> None:
    """All versions count, however near the first of them is thought to be."""
    world = World(existing=False)
    since_ms = world.clock()
    for version in range(200):
        world.lake.put(f"_delta_log/{version:020}.json", b'{"commitInfo": {}}')
    assert len(DeltaHistory(world.lake, world.clock).since_ms(since_ms, near=150)) == 200


@pytest.mark.parametrize("checkpoint", [None, 1])
def test_a_gap_since_the_time_is_said_of_a_table_that_is_another_one(checkpoint: int | None) -> None:
    """The missing version may have restored the write's rows, and a retry would write them again."""
    world = World()
    world.append_foreign()
    if checkpoint is not None:
        world.lake.put("_delta_log/_last_checkpoint", json.dumps({"version": checkpoint}).encode())
    world.sleep(60)
    begun = attempt(version_before=1, modified_ms=world.now_ms, started_ms=world.now_ms)
    world.append_foreign()
    world.append_foreign()
    assert history(world).of_write("w", begun) == ()
    world.lake.delete(key_of(2))

    with pytest.raises(UndecidableError, match="the next one is 3"):
        history(world).of_write("w", begun)


def test_a_version_of_the_same_second_counts_as_later() -> None:
    """S3 dates objects by the second, so that it may have come behind the moment."""
    world = World(existing=False)
    world.sleep(-world.now_ms % 1000 / 1000)
    world.log.create()

    assert [commit.version for commit in history(world).since_ms(world.now_ms + 999)] == [0]
    assert history(world).since_ms(world.now_ms + 1000) == ()


def test_as_many_of_the_last_versions_are_read_as_are_asked_for() -> None:
    """Older than the time, and as far as the log's retention has left them."""
    world = World()
    for _ in range(5):
        world.append_foreign()
    world.sleep(10)
    world.append_foreign()

    def versions(at_least: int) -> list[int]:
        return [commit.version for commit in history(world).since_ms(world.now_ms - 5000, at_least=at_least)]

    assert [versions(0), versions(1), versions(3)] == [[7], [7], [5, 6, 7]]
    for version in range(4):
        world.lake.delete(key_of(version))
    assert versions(100) == [4, 5, 6, 7]
    assert [commit.version for commit in history(world).since_ms(world.now_ms + 9000, at_least=2)] == [6, 7]


def test_the_first_version_dates_what_comes_after_it() -> None:
    """A fence on a table that has one version, whose writer's clock was ahead."""
    store = MemoryObjectStore(World().now)
    info = {"commitInfo": {"inCommitTimestamp": 9_000}}
    store.put(f"_delta_log/{0:020}.json", json.dumps(info).encode())
    begun = attempt(version_before=0, properties={"delta.enableInCommitTimestamps": "true"})

    found = DeltaHistory(store, lambda: 1).info("FENCE", Signature("sw-1", 1), begun, ())

    assert found["commitInfo"]["inCommitTimestamp"] == 9_001
    assert found["commitInfo"]["isBlindAppend"] is False  # other writers check their rows against ours


def test_no_number_is_written_that_delta_cannot_read() -> None:
    """After the largest one that a foreign commit may have, it is repeated."""
    store = MemoryObjectStore(World().now)
    store.put(f"_delta_log/{0:020}.json", json.dumps({"commitInfo": {"inCommitTimestamp": 2**63 - 1}}).encode())
    begun = attempt(version_before=0, properties={"delta.enableInCommitTimestamps": "true"})

    found = DeltaHistory(store, lambda: 1).info("FENCE", Signature("sw-1", 1), begun, ())

    assert found["commitInfo"]["inCommitTimestamp"] == 2**63 - 1


class Long(MemoryObjectStore):
    """A log with very many empty versions, which are made on demand."""

    def list(self, prefix: str, *, start_after: str = "", at_once: int = PAGE) -> Iterator[ListedObject]:
        for version in range(1, 50_000):
            if (key := key_of(version)) > start_after and key.startswith(prefix):
                yield ListedObject(key, 0, self._now())

    def get(self, key: str, *, max_bytes: int | None = None) -> Any:
        return StoredObject(key, b"", '"e"', self._now(), self._now())


def test_a_listing_of_the_log_keeps_no_names() -> None:
    """However many versions somebody has put there: they are counted, and the first gap ends the log."""
    tracemalloc.start()
    try:
        with pytest.raises(UndecidableError, match="the next one is 1"):
            DeltaHistory(Long(), lambda: 1).since(attempt(version_before=-1))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_listing_of_the_log_ends_with_the_time() -> None:
    """The clock is checked once a page."""
    with pytest.raises(StoreError, match="out of time while listing"):
        DeltaHistory(Long(), lambda: 1, may_go_on=lambda: False).since(attempt(version_before=3))


def test_versions_without_actions_take_memory_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A great many empty ones are not read."""
    monkeypatch.setattr("safewriter.tables.delta.history.HELD_MAX_BYTES", 100_000)
    with pytest.raises(StoreError, match="takes more than"):
        DeltaHistory(Long(), lambda: 1).since(attempt(version_before=3))


@pytest.mark.parametrize(
    "body", [b"no json", b"[1]", b'{"txn": 5}', b'{"txn": {}}', b'{"txn": {"appId": "a", "version": []}}']
)
def test_what_is_no_commit_decides_nothing(body: bytes) -> None:
    """Whatever is wrong with it, the error names it, and the write stays open."""
    store = MemoryObjectStore(World().now)
    store.put(f"_delta_log/{3:020}.json", body)

    with pytest.raises(StoreError, match="is no commit"):
        DeltaHistory(store, lambda: 1).read(3)


def test_a_large_commit_is_read_in_blocks_and_not_at_once() -> None:
    """With its actions, on which the verdict rests, after thousands of others."""
    store = MemoryObjectStore()
    many = [File(f"part-{number:05}").add(stats="x" * 1000) for number in range(2_000)]
    store.put(key_of(0), body_of([*many, {"txn": {"appId": "sw-1", "version": 3}}]))
    whole: list[int] = []

    class Noting(MemoryObjectStore):
        def get(self, key: str, *, max_bytes: int | None = None) -> Any:
            assert max_bytes is not None
            whole.append(max_bytes)
            return super().get(key, max_bytes=max_bytes)

        def stream(self, key: str) -> Any:
            return store.stream(key)

    noting = Noting()
    noting._objects = store._objects

    (found,) = DeltaHistory(noting, lambda: 1).since(attempt(version_before=-1))

    assert (len(found.paths), found.transactions) == (2_000, {"sw-1": 3})
    assert max(whole) < len(store._objects[key_of(0)][0])


def test_all_versions_of_a_table_together_have_a_bound() -> None:
    """A log of many large commits takes no more memory than one of them."""
    store = MemoryObjectStore()
    for version in range(3):
        store.put(key_of(version), b'{"remove":{"path":"a"}}\n' * 150_000)

    with pytest.raises(StoreError, match=r"takes more than .* bytes of memory"):
        DeltaHistory(store, lambda: 1).since(attempt(version_before=-1))


def test_reading_of_one_large_commit_ends_with_the_time() -> None:
    """The clock is checked before each of its blocks."""
    store, looks = MemoryObjectStore(), iter([True, True, False])
    store.put(key_of(0), b'{"remove":{"path":"a"}}\n' * 100_000)

    with pytest.raises(StoreError, match="out of time after"):
        DeltaHistory(store, lambda: 1, may_go_on=lambda: next(looks)).since(attempt(version_before=-1))


def test_a_commit_without_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is concluded from it, and the time is left for other tables."""
    monkeypatch.setattr("safewriter.tables.delta.history._COMMIT_MAX_BYTES", 2 << 20)
    store = MemoryObjectStore()
    store.put(key_of(0), b"\n" * (3 << 20))

    with pytest.raises(StoreError, match="more than the 2,097,152 that such an object may have"):
        DeltaHistory(store, lambda: 1).since(attempt(version_before=-1))
