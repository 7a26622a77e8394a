"""A listing that skips runs of files finds the same files as a whole one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safewriter.objects.store import PAGE as FULL
from safewriter.tables.delta import listing
from safewriter.tables.delta.leftovers import table_of
from safewriter.tables.delta.listing import list_skipping
from tests.support.memory_store import MemoryObjectStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safewriter.objects import ListedObject

OURS = ("sw-00112233aabb-1-0123456789abcdef-", "sw-00112233aabb-2-fedcba9876543210-")
PAGE = 3

names = st.sampled_from(
    [
        *(f"{prefix}part-0000{one}-c000.parquet" for prefix in ("", *OURS, "sw-ffff00000000-1-ab-") for one in "13"),
        "part-00007-x.snappy.parquet", "part-zero", "partition", "sw-x", "swap", "zz", "A", "cdc-00001-c000.parquet",
        "deletion_vector_00aa.bin", "deletion_vector_x", "_SUCCESS", "00000000000000000001.json",
        "00001-aa.metadata.json", "v1.metadata.json", "aa-m0.avro", "snap-1.avro",
    ]
)  # fmt: skip
folders = st.sampled_from(
    ["", "_delta_log/", "_change_data/", "day=1/", "day=2/", "part=a/", "part=b/", "A/", "metadata/", "zone=z/",
     "inner/", "inner/_delta_log/", "inner/metadata/", "inner/part=a/", "day=1/part=a/", "part-date=1/", "cdc-a=1/",
     "new\nline/", "new\nline/_delta_log/"]
)  # fmt: skip
keys = st.sets(st.builds(str.__add__, folders, names), max_size=60)


class Counted(MemoryObjectStore):
    """A store that counts the listed pages, and notes how many keys each may have."""

    def __init__(self) -> None:
        super().__init__()
        self.pages = 0
        self.asked: list[int] = []

    def list(self, prefix: str, *, start_after: str = "", at_once: int = FULL) -> Iterator[ListedObject]:
        self.pages += 1
        self.asked.append(at_once)
        return super().list(prefix, start_after=start_after, at_once=at_once)


def filled(found: set[str]) -> Counted:
    store = Counted()
    for key in found:
        store.put(key, b"")
    return store


@pytest.mark.parametrize("column", ["part-date", "cdc-a"])
def test_a_run_of_files_hides_no_partition_that_is_called_nearly_so(
    monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    """Its folder sorts after the numbers of the files."""
    monkeypatch.setattr(listing, "PAGE", PAGE)
    ours = f"{column}=1/{OURS[0]}part-00000-c000.parquet"
    others = {f"{column[: column.index('-')]}-0000{number}-c000.parquet" for number in range(PAGE)}
    assert ours in {one.key for one in list_skipping(filled({ours, *others}), OURS)}


@given(keys)
def test_no_file_of_ours_is_left_out_and_no_table_inside(found: set[str]) -> None:
    """In any folder, and between any other files; with no more pages than a whole listing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listing, "PAGE", PAGE)
        store = filled(found)
        seen = [one.key for one in list_skipping(store, OURS)]
    assert seen == sorted(set(seen))
    ours = {key for key in found if key.rpartition("/")[2].startswith(OURS) and "_delta_log/" not in key}
    assert {key for key in ours if "metadata/" not in key} <= set(seen) <= found
    assert {table_of(key) for key in found} - {None} == {table_of(key) for key in seen} - {None}
    assert store.pages <= len(found) // PAGE + 1


@pytest.mark.parametrize(
    "others",
    [
        [f"part-{number:05}-x-c000.snappy.parquet" for number in range(5_000)],
        [f"_delta_log/{number:020}.json" for number in range(5_000)],
        [f"metadata/{number:05}-x.metadata.json" for number in range(5_000)],
        [f"sw-{number:012x}-1-0123456789abcdef-part-0-c000.parquet" for number in range(5_000)],
        [f"day=1/sw-{number:012x}-1-0123456789abcdef-part-0-c000.parquet" for number in range(5_000)],
        [f"deletion_vector_{number:08x}.bin" for number in range(5_000)],
    ],
    ids=["files", "log", "Iceberg's metadata", "guarded files", "a partition", "deletion vectors"],
)
def test_many_files_of_others_cost_no_more_requests(others: list[str]) -> None:
    """Five pages of them cost a short one, before ours and after them."""
    ours = {f"{OURS[0]}part-1-c000.parquet", f"zone=z/{OURS[1]}part-1-c000.parquet"}
    store = filled({*others, *ours})
    assert ours <= {one.key for one in list_skipping(store, OURS)}
    assert store.pages <= 3
    assert sum(store.asked) < FULL


def test_where_there_is_nothing_to_jump_over_the_pages_are_soon_full() -> None:
    """Short pages cost at most four requests beside a whole listing of a table with many partitions."""
    store = filled({f"day={day:04}/{number}.parquet" for day in range(1_000) for number in range(5)})
    assert sum(1 for _ in list_skipping(store, OURS)) == 5_000
    assert store.asked[-1] == FULL
    assert store.pages <= 5 + 4
