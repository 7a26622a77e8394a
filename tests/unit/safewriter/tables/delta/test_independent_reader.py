"""Fence and revert as another implementation of Delta sees them, on tables that it has written itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from arro3.core import Array, DataType, Table
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from safewriter.record.document import Status
from safewriter.settle.recovery import Cause
from safewriter.tables.session import TableState
from tests.unit.safewriter.delta_log import key_of
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from pathlib import Path


class Disk:
    """A table on disk that deltalake reads and writes, copied to and from the world's lake."""

    def __init__(self, world: World, root: Path) -> None:
        self.world = world
        self.root = root / "table"

    def append(self, days: list[str], **more: Any) -> None:
        numbers = Array(range(len(days)), type=DataType.int64())
        write_deltalake(
            str(self.root),
            Table.from_pydict({"n": numbers, "day": Array(days, type=DataType.utf8())}),
            mode="append",
            partition_by=["day"],
            **more,
        )

    def load(self) -> None:
        """Copy what is new on disk into the lake."""
        for path in sorted(self.root.rglob("*")):
            key = str(path.relative_to(self.root))
            if path.is_file() and self.world.lake.get(key) is None:
                self.world.lake.put(key, path.read_bytes())

    def save(self) -> None:
        """Make the disk equal to the lake."""
        for key, body in self.world.lake.contents().items():
            path = self.root / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)

    def table(self) -> DeltaTable:
        self.save()
        return DeltaTable(str(self.root))

    def rows(self) -> int:
        return sum(int(rows) for rows in self.table().get_add_actions(flatten=True)["num_records"].to_pylist())


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    """A table with three foreign rows."""
    found = Disk(World(existing=False), tmp_path)
    found.append(["2026-11-20", "2026-11-20", "a b/c%d"])
    found.load()
    return found


def claimed(disk: Disk) -> None:
    """Claim the write on the table as deltalake sees it."""
    table = disk.table()
    job = disk.world.job()
    claimer = job.claimer
    claimer.announce()
    job.held = claimer.claim(TableState(table.version(), str(table.metadata().id), (), {})).checkpoint


def test_a_fence_is_a_version_like_any_other(disk: Disk) -> None:
    """Nothing changes for a reader, the history names the fence, and others append behind it."""
    claimed(disk)

    assert disk.world.settle().status is Status.ROLLED_BACK

    assert (disk.table().version(), disk.rows()) == (1, 3)
    assert disk.table().history()[0]["operation"] == "SAFEWRITER FENCE"
    assert disk.table().transaction_version(disk.world.key) == 1
    disk.append(["2026-11-21"])
    assert (disk.table().version(), disk.rows()) == (2, 4)


@pytest.mark.parametrize("between", [False, True])
def test_a_revert_takes_our_rows_and_no_others(disk: Disk, between: object) -> None:
    """Partitions whose names need encoding included; every older version is still readable."""
    claimed(disk)
    ours = CommitProperties(app_transactions=[Transaction(disk.world.key, 1)])
    disk.append(["2026-11-20", "a b/c%d", "ü"], commit_properties=ours)
    if between:
        disk.append(["2026-11-21", "a b/c%d"])
    disk.load()
    assert disk.rows() == 6 + 2 * bool(between)

    assert disk.world.settle(Cause.EXCEPTION).status is Status.ROLLED_BACK

    assert disk.rows() == 3 + 2 * bool(between)
    assert disk.table().history()[0]["operation"] == "SAFEWRITER REVERT"
    assert DeltaTable(str(disk.root), version=1).version() == 1
    removed = [json.loads(line) for line in disk.world.lake.contents()[key_of(disk.table().version())].splitlines()]
    assert sum("remove" in action for action in removed) == 3


def test_files_that_another_engine_has_compacted_are_not_undone(disk: Disk) -> None:
    """It may encode our paths differently, and our rows are in its files now."""
    claimed(disk)
    ours = CommitProperties(app_transactions=[Transaction(disk.world.key, 1)])
    disk.append(["2026-11-20", "a b/c%d"], commit_properties=ours)
    disk.table().optimize.compact()
    disk.load()

    document = disk.world.settle(Cause.EXCEPTION)

    assert document.status is Status.COMMITTED
    assert "rewrote files" in (document.undo_refused or "")
    assert disk.rows() == 5


def test_an_empty_table_that_fences_a_creation_can_be_read_and_written(tmp_path: Path) -> None:
    """The schema is that of the commit that never came."""
    disk = Disk(World(existing=False), tmp_path)
    disk.append(["x"])
    creation = [
        line
        for line in (disk.root / key_of(0)).read_bytes().splitlines()
        if b'"protocol"' in line[:12] or b'"metaData"' in line[:12]
    ]
    assert len(creation) == 2
    job = disk.world.job()
    job.claim()
    note = b"\n".join([*creation, b'{"note":{"nonce":"n"}}\n'])
    disk.world.bucket.create(disk.world.checkpoints.note_key(disk.world.key, 1), note)

    assert disk.world.settle().status is Status.ROLLED_BACK

    other = Disk(disk.world, tmp_path / "other")
    assert (other.table().version(), other.rows()) == (0, 0)
    other.append(["y"])
    assert (other.table().version(), other.rows()) == (1, 1)
