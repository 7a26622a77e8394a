"""The clean-up of a dead attempt on Delta removes files with its prefix that no version names, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from safewriter.objects import StoreError, Upload
from safewriter.tables.delta.history import DeltaHistory
from safewriter.tables.delta.leftovers import remove_files, table_of
from tests.unit.safewriter.delta_log import File
from tests.unit.safewriter.record.samples import attempt
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from collections.abc import Sequence


def always() -> bool:
    return True


def remove(world: World, *prefixes: str, before: int = 1, may_go_on: Any = always) -> int:
    commits = DeltaHistory(world.lake, world.clock).since(attempt(version_before=before))
    return remove_files(world.lake, prefixes, commits, lambda *_: (), may_go_on)


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
    """An empty list of prefixes does not match every file."""
    world = World()
    world.lake.put("pre-1.parquet", b"")

    assert remove(world) == 0
    assert "pre-1.parquet" in world.lake.contents()


def test_a_file_that_any_version_refers_to_stays() -> None:
    """It was added, or added and removed since, or is a change file; its path may be percent-encoded in the log."""
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
    """Foreign uploads continue."""
    world = World()
    for key in ("pre-1.parquet", "a=1/pre-2.parquet", "foreign.parquet"):
        world.lake.begin_upload(Upload(key, "id"))

    remove(world, "pre-")

    assert [upload.key for upload in world.lake.uploads("")] == ["foreign.parquet"]


@pytest.mark.parametrize(("after", "left"), [("two of the list", 5), ("the list and two batches", 1)])
def test_clean_up_stops_when_time_is_up(monkeypatch: pytest.MonkeyPatch, after: str, left: int) -> None:
    """An error says that work is left."""
    monkeypatch.setattr("safewriter.objects.store.PAGE", 2)
    world = World()
    for number in range(5):
        world.lake.put(f"pre-{number}", b"")
    answers = iter([True] * (2 + (len(world.lake.contents()) if "batches" in after else 0)) + [False])

    with pytest.raises(StoreError, match=f"out of time while cleaning up, {5 - left} files"):
        remove(world, "pre-", may_go_on=lambda: next(answers))
    assert sum(key.startswith("pre-") for key in world.lake.contents()) == left


def test_thousands_of_files_go_by_a_few_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead attempt at ten thousand partitions left as many files."""
    world, asked = World(), []
    for number in range(10_000):
        world.lake.put(f"day={number}/pre-0.parquet", b"")
    delete_all = world.lake.delete_all

    def noted(keys: Sequence[str]) -> None:
        asked.append(len(keys))
        delete_all(keys)

    monkeypatch.setattr(world.lake, "delete_all", noted)

    assert remove(world, "pre-") == 10_000
    assert asked == [1000] * 10
    assert not any("pre-" in key for key in world.lake.contents())


@pytest.mark.parametrize(
    ("key", "table"),
    [
        ("sub/_delta_log/00000000000000000000.json", ("sub/", "delta")),
        ("tenant\nA/_delta_log/00000000000000000000.json", ("tenant\nA/", "delta")),
        ("a/b/metadata/v1.metadata.json", ("a/b/", "iceberg")),
        ("a/metadata/v3.metadata.json.gz", ("a/", "iceberg")),
        ("a/.hoodie/metadata/.hoodie/hoodie.properties", ("a/", "hudi")),
        ("a/schema/schema-0", ("a/", "paimon")),
        ("_delta_log/00000000000000000000.json", ("", "delta")),
        ("metadata/v1.metadata.json", ("", "iceberg")),
        ("v1.metadata.json", ("", "iceberg")),
        ("sub/v1.metadata.json", None),
        ("sub/metadata.json", None),
    ],
)
def test_a_table_is_known_by_its_metadata(key: str, table: tuple[str, str] | None) -> None:
    """In any folder, also one whose name holds a line end; the outermost folder of a table is the table's."""
    assert table_of(key) == table


def test_a_file_of_a_table_inside_stays_whatever_its_folder_is_called() -> None:
    """A job's block names files alike in all tables that it writes; a line end is a character of a key."""
    world = World()
    for key in ("tenant\nA/pre-0.parquet", "tenant\nA/_delta_log/0.json", "pre-1.parquet"):
        world.lake.put(key, b"")
    assert remove(world, "pre-") == 1
    assert "tenant\nA/pre-0.parquet" in world.lake.contents()


def test_more_files_than_names_that_are_held_go_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are listed a second time, when it is known which of them lie in other tables."""
    monkeypatch.setattr("safewriter.tables.delta.leftovers._NAMES_MAX_BYTES", 250)
    world = World()
    for number in range(9):
        world.lake.put(f"A/pre-{number}", b"")
        world.lake.put(f"inner/A/pre-{number}", b"")
    world.lake.put("inner/_delta_log/0.json", b"")
    assert remove(world, "pre-") == 9
    assert sum("pre-" in key for key in world.lake.contents()) == 9


def test_too_many_tables_inside_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their names would fill the memory, and none may be dropped."""
    monkeypatch.setattr("safewriter.tables.delta.leftovers._TABLES_MAX", 2)
    world = World()
    for number in range(3):
        world.lake.put(f"{number}/_delta_log/0.json", b"")
    world.lake.put("pre-1", b"")
    with pytest.raises(StoreError, match="tables in it"):
        remove(world, "pre-")
    assert "pre-1" in world.lake.contents()


@pytest.mark.parametrize("path", ["./pre-1", "s3a://lake/t/pre-1", "a/../pre-1"])
def test_a_file_that_a_version_refers_to_in_another_form_stays(path: str) -> None:
    """Readers of the table resolve it."""
    world = World()
    world.lake.put("pre-1", b"")
    world.log.commit([{"commitInfo": {}}, {"add": {"path": path, "partitionValues": {}, "size": 1}}])
    assert remove(world, "pre-") == 0


@pytest.mark.parametrize("mark", ["?", "#"])
def test_a_file_whose_name_holds_what_ends_one_in_a_uri_stays(mark: str) -> None:
    """The log names it by an encoded path."""
    world = World()
    world.lake.put(f"pre-1{mark}x", b"")
    add = {"path": f"pre-1%{ord(mark):02X}x", "partitionValues": {}, "size": 1}
    world.log.commit([{"commitInfo": {}}, {"add": add}])
    assert remove(world, "pre-") == 0


def test_the_clock_is_asked_before_each_abort() -> None:
    """A thousand uploads would take a minute."""
    world = World()
    for number in range(3):
        world.lake.begin_upload(Upload(f"pre-{number}", "1"))
    with pytest.raises(StoreError, match="out of time"):
        remove(world, "pre-", may_go_on=lambda: len(list(world.lake.uploads(""))) == 3)
    assert len(list(world.lake.uploads(""))) == 2


@pytest.mark.parametrize("manifests", [0, 12])
@pytest.mark.parametrize("inner", ["a=1/_delta_log/00000000000000000000.json", "a=1/metadata/v1.metadata.json"])
def test_a_table_inside_the_table_keeps_its_files_and_uploads(inner: str, manifests: int) -> None:
    """A block's session gives its prefix to all files that the script writes; the listing jumps over manifests."""
    world = World()
    for number in range(manifests):
        world.lake.put(f"{inner.rpartition('/')[0]}/{number:02}-m0.avro", b"")
    for key in ("A=0/pre-1.parquet", "a=1/pre-2.parquet", "a=1/b=2/pre-3.parquet", "a=2/pre-4.parquet", inner):
        world.lake.put(key, b"")
    world.lake.begin_upload(Upload("a=1/pre-5.parquet", "1"))
    world.lake.begin_upload(Upload("a=2/pre-6.parquet", "1"))

    assert remove(world, "pre-") == 2

    assert {"a=1/pre-2.parquet", "a=1/b=2/pre-3.parquet", inner} <= set(world.lake.contents())
    assert [upload.key for upload in world.lake.uploads("")] == ["a=1/pre-5.parquet"]
