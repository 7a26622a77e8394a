from __future__ import annotations

import json
from typing import Any

import pytest

from safewriter.objects import MemoryObjectStore, StoreError, Upload
from safewriter.tables.delta.history import DeltaHistory, RetentionGapError
from tests.unit.safewriter.delta_log import DeltaLog, File, body_of, creation, key_of
from tests.unit.safewriter.test_state import attempt
from tests.unit.safewriter.world import World


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


def test_what_else_lies_in_the_log_is_no_version() -> None:
    """Checkpoints, checksums, compactions and staged commits are passed over."""
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
    """Where a version is missing, ours may have been."""
    world = World()
    for _ in range(3):
        world.append_foreign()
    world.lake.delete(key_of(lost))

    with pytest.raises(RetentionGapError, match="log retention"):
        history(world).since(attempt(version_before=1))


def test_retention_of_what_came_before_does_not_matter() -> None:
    """Old versions may go, version 0 with the table's id included."""
    world = World()
    for _ in range(3):
        world.append_foreign()
    for version in (0, 1, 2):
        world.lake.delete(key_of(version))

    found = history(world).since(attempt(version_before=3, table_id="any"))

    assert [commit.version for commit in found] == [4]


def test_a_dropped_table_is_said() -> None:
    """Nothing at or after the known version means that the table is gone."""
    world = World(existing=False)

    with pytest.raises(RetentionGapError, match="dropped"):
        history(world).since(attempt(version_before=3))


def test_a_recreated_table_is_said() -> None:
    """Another id at version 0 is another table, although its versions look right."""
    world = World()
    world.append_foreign()

    with pytest.raises(RetentionGapError, match="recreated"):
        history(world).since(attempt(version_before=1, table_id="another"))


@pytest.mark.parametrize("body", [b"{", b"[1]\n", b'{"txn":{"appId":"x"}}\n', b"\xff\n"])
def test_a_damaged_version_is_a_store_error(body: bytes) -> None:
    """Nothing can be concluded from it, so it is an answer that nobody knows, never a crash of the settler."""
    world = World()
    world.lake.put(key_of(2), body)

    with pytest.raises(StoreError, match="is no commit"):
        history(world).since(attempt(version_before=1))


def test_a_version_that_is_listed_but_cannot_be_read_is_a_store_error() -> None:
    """A missing permission must not look like a missing commit."""

    class Hidden(MemoryObjectStore):
        def get(self, key: str) -> None:
            return None

    store = Hidden()
    DeltaLog(store).create()

    with pytest.raises(StoreError, match="cannot be read"):
        DeltaHistory(store, lambda: 1).since(attempt(version_before=-1))


# -- writing -----------------------------------------------------------------------------------------------------------


def test_a_version_is_written_once() -> None:
    """A slot that is taken is left as it is."""
    world = World()

    assert history(world).append(2, [{"txn": {"appId": "ü", "version": 1}}])
    assert not history(world).append(2, [{"txn": {"appId": "y", "version": 1}}])
    assert world.log.read(2) == [{"txn": {"appId": "ü", "version": 1}}]


def test_a_fence_is_an_empty_commit_with_the_dead_epoch() -> None:
    """It holds commitInfo first, our transaction action, and no file."""
    world = World()
    document = world.job().begin().document

    history(world).fence(document, world.checkpoints)

    info, txn = world.log.read(2)
    assert info["commitInfo"]["operation"] == "SAFEWRITER FENCE"
    assert json.loads(info["commitInfo"]["userMetadata"]) == {
        "safewriter": {"key": world.key, "epoch": 1, "reverts": None}
    }
    assert (txn["txn"]["appId"], txn["txn"]["version"]) == (world.key, 1)


def test_a_second_fence_is_not_written() -> None:
    """Whoever comes later finds the first one."""
    world = World()
    document = world.job().begin().document

    for _ in range(2):
        history(world).fence(document, world.checkpoints)

    assert world.log.head == 2


def test_our_own_commit_needs_no_fence() -> None:
    """Delta refuses to rebase anything of the same application behind it."""
    world = World()
    document = world.job().begin().land().document

    history(world).fence(document, world.checkpoints)

    assert world.log.head == 2


def test_the_fence_of_an_earlier_epoch_is_not_enough() -> None:
    """Each epoch is fenced by its own number."""
    world = World()
    world.job().begin()
    world.settle()
    document = world.job().begin().document

    history(world).fence(document, world.checkpoints)

    assert [txn["version"] for txn in world.log.actions("txn")] == [1, 2]


def test_two_fences_of_one_moment_differ() -> None:
    """Equal bodies would both be taken for the winner's."""
    bodies = []
    for _ in range(2):
        world = World()
        history(world).fence(world.job().begin().document, world.checkpoints)
        bodies.append(world.lake.contents()[key_of(2)])

    assert bodies[0] != bodies[1]


def test_a_fence_that_finds_no_free_slot_gives_up() -> None:
    """Somebody else is always faster; the loop ends all the same."""
    world = World()
    document = world.job().begin().document
    log = history(world)
    log.append = lambda version, actions: False  # type: ignore[method-assign]

    with pytest.raises(StoreError, match="no free slot for a fence"):
        log.fence(document, world.checkpoints)


ENABLED = {"delta.enableInCommitTimestamps": "true"}


def in_commit(world: World, version: int) -> int | None:
    stamp = world.log.actions("commitInfo", version)[0].get("inCommitTimestamp")
    return None if stamp is None else int(stamp)


@pytest.mark.parametrize("ahead_ms", [-5_000, 0, 90_000])
def test_in_commit_timestamps_only_grow(ahead_ms: int) -> None:
    """A fence is dated after the last version, also where the last writer's clock is ahead of ours."""
    world = World(properties=ENABLED, features=("inCommitTimestamp",))
    stamp = world.now_ms + ahead_ms
    world.log.append(File("x"), inCommitTimestamp=stamp)
    document = world.job().begin().document

    history(world).fence(document, world.checkpoints)

    found = in_commit(world, world.log.head)
    assert found is not None
    assert found > stamp
    assert found >= world.now_ms
    assert next(iter(world.log.read(world.log.head)[0]["commitInfo"])) == "inCommitTimestamp"


def test_a_table_without_in_commit_timestamps_gets_none() -> None:
    """The field is only allowed where the table asks for it."""
    world = World()

    history(world).fence(world.job().begin().document, world.checkpoints)

    assert in_commit(world, 2) is None


@pytest.mark.parametrize("enabled", [True, False])
def test_the_newest_metadata_decides_on_in_commit_timestamps(enabled: object) -> None:
    """A property that was changed after the claim counts as it is now."""
    world = World(properties={} if enabled else ENABLED)
    document = world.job().begin().document
    changed = creation(ENABLED if enabled else {})[1]
    world.log.commit([{"commitInfo": {"timestamp": 5, "operation": "SET TBLPROPERTIES"}}, changed])

    history(world).fence(document, world.checkpoints)

    assert (in_commit(world, world.log.head) is not None) is enabled


# -- clean-up ----------------------------------------------------------------------------------------------------------


def remove(world: World, *prefixes: str, before: int = 1, may_go_on: Any = always) -> int:
    log = history(world)
    return log.remove_files(prefixes, log.since(attempt(version_before=before)), may_go_on)


def test_only_files_with_the_prefix_go() -> None:
    """The name decides, in any partition directory; foreign files and the log stay."""
    world = World()
    for key in (
        "pre-1.parquet",
        "a=1/b=2/pre-2.parquet",
        "other-pre-3.parquet",
        "pre/other.parquet",
        "_delta_log/pre-x",
    ):
        world.lake.put(key, b"")
    before = set(world.lake.contents())

    assert remove(world, "pre-") == 2
    assert before - set(world.lake.contents()) == {"pre-1.parquet", "a=1/b=2/pre-2.parquet"}


def test_no_prefix_takes_nothing() -> None:
    """An empty list of prefixes is not every file."""
    world = World()
    world.lake.put("pre-1.parquet", b"")

    assert remove(world) == 0
    assert "pre-1.parquet" in world.lake.contents()


def test_a_file_that_any_version_refers_to_stays() -> None:
    """Added, or added and removed since, or a change file; written in the log as it is or percent-encoded."""
    world = World()
    world.log.append(File("pre-1.parquet"), File("day=a%20b%25/pre-2.parquet"), File("pre-3.parquet"))
    world.log.commit(
        [{"commitInfo": {}}, {"remove": {"path": "pre-3.parquet"}}, {"cdc": {"path": "_change_data/pre-4"}}]
    )
    world.lake.put("_change_data/pre-4", b"")
    world.lake.put("day=a b%/pre-5.parquet", b"")
    assert "day=a b%/pre-2.parquet" in world.lake.contents()

    assert remove(world, "pre-") == 1
    assert "day=a b%/pre-5.parquet" not in world.lake.contents()
    assert {"pre-1.parquet", "day=a b%/pre-2.parquet", "pre-3.parquet", "_change_data/pre-4"} <= set(
        world.lake.contents()
    )


def test_unfinished_uploads_of_such_files_are_aborted() -> None:
    """Those of others go on."""
    world = World()
    for key in ("pre-1.parquet", "a=1/pre-2.parquet", "foreign.parquet"):
        world.lake.begin_upload(Upload(key, "id"))

    remove(world, "pre-")

    assert [upload.key for upload in world.lake.uploads("")] == ["foreign.parquet"]


def test_clean_up_stops_when_time_is_up() -> None:
    """What was not done is said, so that nobody takes it for done."""
    world = World()
    for number in range(5):
        world.lake.put(f"pre-{number}", b"")
    answers = iter([True] * (len(world.lake.contents()) - 3) + [False])

    with pytest.raises(StoreError, match="out of time"):
        remove(world, "pre-", may_go_on=lambda: next(answers))
    assert any(key.startswith("pre-") for key in world.lake.contents())


def test_the_log_of_an_independent_writer_is_understood() -> None:
    """Actions in the order in which other engines write them, protocol and metadata first."""
    store = MemoryObjectStore()
    store.create(key_of(0), body_of([*creation(), File("a").add(), {"commitInfo": {"operation": "CREATE TABLE"}}]))

    (commit,) = DeltaHistory(store, lambda: 1).since(attempt(version_before=-1))

    assert (commit.paths, commit.info["operation"]) == ({"a"}, "CREATE TABLE")
