"""`soal orphans` tells the kind of a file in a table's folder, and its attempt's prefix, by the name alone."""

from __future__ import annotations

import pytest

from soal.orphans.protection import FilePrefix, Kind, kind_of, prefix_of

KEY = "sw-0123456789abcdef0123456789abcdef"
MARKED = f"{KEY}-12-0123456789abcdef-part-00000-x.parquet"
VECTOR = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("part-00000-x.snappy.parquet", Kind.DATA),
        ("day=2026-11-21/part-00000-x.parquet", Kind.DATA),
        ("_hidden=1/day=2/part-00000-x.parquet", Kind.DATA),
        ("_change_data/cdc-00000-x.parquet", Kind.CHANGE_DATA),
        ("_change_data/_hidden=1/cdc-00000-x.parquet", Kind.CHANGE_DATA),
        ("xY/cdc-00000-x.parquet", Kind.CHANGE_DATA),
        (VECTOR, Kind.DELETION_VECTOR),
        (f"xY/{VECTOR}", Kind.DELETION_VECTOR),
        (f"day=1/{MARKED}", Kind.MARKED),
        (f"_change_data/{MARKED}", Kind.MARKED),
    ],
)
def test_the_files_of_tables_are_known_by_their_names(key: str, kind: Kind) -> None:
    """The name decides on a file's kind, whatever its folder."""
    assert kind_of(key, {"_hidden"}) is kind


@pytest.mark.parametrize(
    "key",
    [
        "_delta_log/00000000000000000010.checkpoint.parquet",
        "_delta_log/_sidecars/x.parquet",
        "_delta_index/x.parquet",
        "_checkpoints/offsets/part-0.parquet",
        "_other=1/part-0.parquet",
        "a/_temporary/0/part-0.parquet",
        "_change_data/_tmp/part-0.parquet",
        ".hidden/part-0.parquet",
        "day=1/.part-0.parquet.crc",
        "day=1/_part-0.parquet",
        "_SUCCESS",
        "readme.txt",
        "data.csv",
        "part-0.parquet.tmp",
        "metadata/snap-1.parquet",
        "deletion_vector_x.bin",
        "other.bin",
    ],
)
def test_what_is_not_named_like_a_tables_file_is_left_alone(key: str) -> None:
    """The log, hidden folders and files, other formats and any other files have no kind."""
    assert kind_of(key, {"_hidden"}) is None


def test_a_mark_names_its_attempt() -> None:
    """A marked name contains the write key, the epoch and the nonce; one of an earlier version the key's start."""
    assert prefix_of(f"day=1/{MARKED}") == FilePrefix(KEY, 12, "0123456789abcdef")
    assert prefix_of(MARKED.replace(KEY, KEY[:15])) == FilePrefix(KEY[:15], 12, "0123456789abcdef")
    assert prefix_of(MARKED.replace(KEY, KEY[:20])) is None
    assert prefix_of("part-0.parquet") is None
    assert prefix_of(f"{MARKED}/part-0.parquet") is None
