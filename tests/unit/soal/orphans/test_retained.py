"""Logs that start with a checkpoint, written by deltalake and cut into the other existing forms."""

from __future__ import annotations

import io
import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from arro3.core import Array, DataType, RecordBatch, Table
from arro3.io import read_parquet, write_parquet
from deltalake import DeltaTable, write_deltalake

from safewriter.objects import Location
from soal.orphans.log_actions import UnreadableLogError
from soal.orphans.retained import LogMovedError, follow, read_retained
from tests.support.memory_store import MemoryObjectStore

if TYPE_CHECKING:
    from collections.abc import Callable

LOG = "_delta_log/"
CHECKPOINT = f"{LOG}{4:020}.checkpoint.parquet"
LOCATION = Location("memory", "table")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return a table of six versions: folder names that need encoding, an overwrite, a checkpoint of version 4."""
    root = tmp_path_factory.mktemp("retained") / "table"

    def write(days: list[str], mode: Any = "append") -> None:
        numbers = Array(range(len(days)), type=DataType.int64())
        rows = Table.from_pydict({"n": numbers, "day": Array(days, type=DataType.utf8())})
        write_deltalake(str(root), rows, mode=mode, partition_by=["day"])

    write(["a b/c%d", "x"])
    write(["y"])
    write(["ü+&"], mode="overwrite")
    write(["a b/c%d", "z"])
    write(["x"])
    DeltaTable(str(root)).create_checkpoint()
    write(["y"])
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def store(written: dict[str, bytes]) -> MemoryObjectStore:
    """The table in the test's own store."""
    found = MemoryObjectStore()
    for key, content in written.items():
        found.put(key, content)
    return found


def files(store: MemoryObjectStore) -> set[str]:
    return {listed.key for listed in store.list("") if not listed.key.startswith(LOG)}


def keys(store: MemoryObjectStore) -> set[str]:
    """Return the keys of the files to which the log refers."""
    return set(read_retained(store, LOCATION).keys) & files(store)


def body(store: MemoryObjectStore, key: str) -> bytes:
    found = store.get(key)
    assert found is not None
    return found.body


def lose_commits(store: MemoryObjectStore, before: int = 4) -> None:
    for version in range(before):
        store.delete(f"{LOG}{version:020}.json")


def parquet(batches: list[RecordBatch]) -> bytes:
    written = io.BytesIO()
    write_parquet(Table.from_batches(batches), written)
    return written.getvalue()


def checkpoint(store: MemoryObjectStore) -> list[RecordBatch]:
    """Return the checkpoint with one row per batch."""
    return [batch.slice(row, 1) for batch in read_parquet(body(store, CHECKPOINT)) for row in range(batch.num_rows)]


def in_parts(store: MemoryObjectStore) -> None:
    """Split the checkpoint into parts, as Spark does with a large one."""
    rows = checkpoint(store)
    for part, some in enumerate((rows[:3], rows[3:]), 1):
        store.put(f"{LOG}{4:020}.checkpoint.{part:010}.{2:010}.parquet", parquet(some))
    store.delete(CHECKPOINT)


def sidecars(store: MemoryObjectStore) -> list[str]:
    rows = [row.select(["add", "remove"]) for row in checkpoint(store)]
    names = [f"{uuid.uuid4()}.parquet" for _ in range(2)]
    for name, some in zip(names, (rows[:4], rows[4:]), strict=True):
        store.put(f"{LOG}_sidecars/{name}", parquet(some))
    return names


def with_sidecars(store: MemoryObjectStore) -> None:
    """Replace the checkpoint by a v2 checkpoint in JSON with its files in sidecars."""
    lines = [
        {"checkpointMetadata": {"version": 4}},
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["v2Checkpoint"]}},
        {"metaData": {"id": "x", "partitionColumns": ["day"]}},
        *({"sidecar": {"path": name, "sizeInBytes": 1, "modificationTime": 1}} for name in sidecars(store)),
    ]
    text = "\n".join(map(json.dumps, lines))
    store.put(f"{LOG}{4:020}.checkpoint.{uuid.uuid4()}.json", text.encode())
    store.delete(CHECKPOINT)


@pytest.mark.parametrize("change", [lambda _: None, in_parts, with_sidecars], ids=["one file", "parts", "sidecars"])
def test_a_checkpoint_says_what_the_lost_commits_said(
    store: MemoryObjectStore, change: Callable[[MemoryObjectStore], None]
) -> None:
    """A checkpoint of any form gives all files, live and removed, without the lost commits."""
    everything = files(store)
    assert len(everything) == 8
    change(store)
    assert keys(store) == everything
    lose_commits(store)
    assert keys(store) == everything
    assert read_retained(store, LOCATION).partition_columns == {"day"}


def test_what_neither_a_commit_nor_the_checkpoint_names_is_not_retained(store: MemoryObjectStore) -> None:
    """A file that neither a commit nor the checkpoint names is not retained, so the test before can fail."""
    store.put("day=x/part-9.parquet", b"")
    lose_commits(store)
    assert files(store) - keys(store) == {"day=x/part-9.parquet"}


def test_a_checkpoint_that_lost_a_part_or_its_beginning_is_not_enough(store: MemoryObjectStore) -> None:
    """A checkpoint without a part or its start is an error."""
    in_parts(store)
    lose_commits(store)
    store.delete(f"{LOG}{4:020}.checkpoint.{1:010}.{2:010}.parquet")
    with pytest.raises(UnreadableLogError, match="no whole checkpoint"):
        keys(store)


def test_a_damaged_checkpoint_is_not_passed_over(store: MemoryObjectStore) -> None:
    """A checkpoint with half of its bytes is an error."""
    lose_commits(store)
    store.put(CHECKPOINT, body(store, CHECKPOINT)[:-100])
    with pytest.raises(UnreadableLogError, match="cannot be read"):
        keys(store)


def test_a_sidecar_that_is_gone_is_a_log_that_moves(store: MemoryObjectStore) -> None:
    """A missing sidecar means that the log has moved; another run will find a newer checkpoint."""
    with_sidecars(store)
    lose_commits(store)
    store.delete(next(listed.key for listed in store.list(f"{LOG}_sidecars/")))
    with pytest.raises(LogMovedError, match="no longer there"):
        keys(store)


def test_a_protocol_in_a_checkpoint_is_looked_at(store: MemoryObjectStore) -> None:
    """The protocol in a checkpoint is checked, since its commit may be lost."""
    with_sidecars(store)
    lose_commits(store)
    (key,) = (listed.key for listed in store.list(LOG) if ".checkpoint." in listed.key)
    store.put(key, body(store, key).replace(b'"v2Checkpoint"', b'"catalogManaged"'))
    with pytest.raises(UnreadableLogError, match="catalogManaged"):
        keys(store)


def test_a_log_that_gains_commits_is_followed_from_where_it_was_read(store: MemoryObjectStore) -> None:
    """The files of new commits are added to the known ones."""
    known = read_retained(store, LOCATION)
    assert follow(store, known) is known
    for version in (6, 7):
        store.put(f"{LOG}{version:020}.json", json.dumps({"add": {"path": f"part-{version}.parquet"}}).encode())
    store.put(f"{LOG}{6:020}.checkpoint.parquet", b"not looked at")
    found = follow(store, known)
    assert found.version == 7
    assert found.keys - known.keys == {"part-6.parquet", "part-7.parquet"}
    assert follow(store, found) is found


@pytest.mark.parametrize("how", ["gone", "other", "gap"])
def test_a_log_that_is_not_the_one_that_was_read_is_not_followed(store: MemoryObjectStore, how: str) -> None:
    """A log is not followed if its newest commit is missing or changed, or the next one is missing."""
    known = read_retained(store, LOCATION)
    key = f"{LOG}{5:020}.json"
    if how == "gone":
        store.delete(key)
    else:
        store.put(key if how == "other" else f"{LOG}{7:020}.json", b'{"commitInfo":{}}')
    with pytest.raises(LogMovedError):
        follow(store, known)
