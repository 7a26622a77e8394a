"""A snapshot's shard in progress refuses impossible rows, and counts those that its SQLite file really holds."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from safewriter.snapshots.format.shard_file import ShardFile

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("keys", "values", "error"),
    [
        ([b"a", b"a"], [b"v"] * 2, sqlite3.IntegrityError),
        ([b"a"], [None], sqlite3.IntegrityError),
        ([b"a", b"b"], [b"v"], ValueError),
    ],
    ids=["a key twice", "no value", "a value too few"],
)
def test_rows_that_cannot_be_are_refused(
    tmp_path: Path, keys: list[bytes], values: list[bytes], error: type[Exception]
) -> None:
    """The writer gets the error before the shard is complete."""
    file = ShardFile(tmp_path / "shard.db")
    file.__enter__()
    with pytest.raises(error):
        file.add(keys, values)
    file.close()


def test_the_rows_that_are_stored_are_counted_in_the_file(tmp_path: Path) -> None:
    """The count is a check, so it does not use the number of added rows."""
    file = ShardFile(tmp_path / "shard.db")
    file.__enter__()
    file.add([bytes([number]) for number in range(200)], [b"v"] * 200)
    file.rows = 0
    assert file.stored_rows() == 200
    file.close()
