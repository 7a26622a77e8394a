"""The rows, the bare loop, and the arithmetic of the benchmark of snapshots."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import xxhash

from tests.lab.bench import snapshot, snapshot_beside
from tests.lab.bench.snapshot_bare import write
from tests.lab.bench.snapshot_rows import keys, values, write_files
from tests.lab.processes import Child

if TYPE_CHECKING:
    from pathlib import Path

_NUMBERS = range(1000)


def test_rows_are_unique_and_of_one_size() -> None:
    """Keys are below 2^62, in no order; values have 107 bytes."""
    found = keys(_NUMBERS).tolist()
    assert len(set(found)) == len(found)
    assert found != sorted(found)
    assert all(0 <= key < 2**62 for key in found)
    assert {len(value) for value in values([*_NUMBERS, 10**9])} == {107}


def test_the_files_hold_the_rows_of_the_bare_loop(tmp_path: Path) -> None:
    """Both sides write the same rows."""
    write_files(1000, tmp_path / "rows")
    found = pq.read_table(tmp_path / "rows")
    assert len(list((tmp_path / "rows").iterdir())) == 4
    assert found["id"].to_pylist() == keys(_NUMBERS).tolist()
    assert found["v"].to_pylist() == values(_NUMBERS)


def test_the_bare_loop_does_the_work(tmp_path: Path) -> None:
    """Each row is in the file of its digest."""
    write(keys(_NUMBERS).tolist(), values(_NUMBERS), 3, tmp_path)
    found: dict[bytes, bytes] = {}
    for db_id in range(3):
        with closing(sqlite3.connect(tmp_path / f"{db_id}.db")) as database:
            rows = dict(database.execute("SELECT k, v FROM kv").fetchall())
        assert all(xxhash.xxh3_64_intdigest(key[::-1]) % 3 == db_id for key in rows)
        found |= rows
    assert found == {
        key.to_bytes(8, "big"): value for key, value in zip(keys(_NUMBERS).tolist(), values(_NUMBERS), strict=True)
    }


def test_the_bare_loop_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    """It answers with what it has spent, and leaves nothing."""
    with Child("tests.lab.bench.snapshot_bare", (0, 1000, tmp_path), tmp_path) as loop:
        loop.ask(shards=2)
        answer = loop.answer()
    assert answer["cpu_s"] > 0
    assert answer["ended_s"] > answer["began_s"]
    assert [path.suffix for path in tmp_path.iterdir()] == [".log"]


def test_each_build_is_compared_with_the_bare_loop_of_its_round() -> None:
    """The machine may slow down between rounds; the ratio is the median of the rounds'."""
    rounds = [
        snapshot._Round(
            snapshot._Build(wall_s, {"driver": 0.5, "jvm": 1.0, "workers": wall_s}, {"driver": 100 + wall_s}),
            snapshot._Bare(bare_s, bare_s),
        )
        for wall_s, bare_s in ((10.0, 5.0), (20.0, 15.0), (60.0, 60.0))
    ]
    cost = snapshot._cost(1000, 8, rounds)
    assert (cost.wall_s, cost.rows_per_s, cost.wall_ratio) == (20.0, 50.0, 0.75)
    assert cost.cpu_s == 21.5
    assert cost.cpu_ratio == 15.0 / 21.5
    assert cost.driver_mb == 160


def test_some_rows_may_have_other_values(tmp_path: Path) -> None:
    """Their keys and their sizes stay."""
    write_files(1000, tmp_path / "rows", {7, 999})
    found = pq.read_table(tmp_path / "rows")
    assert found["id"].to_pylist() == keys(_NUMBERS).tolist()
    changed = [number for number, value in enumerate(found["v"].to_pylist()) if value != values([number])[0]]
    assert changed == [7, 999]


def test_the_changed_keys_lie_in_one_shard_or_in_all(tmp_path: Path) -> None:
    """One in a hundred, by the digest that the build uses."""
    sources = snapshot_beside._sources(4000, 8, tmp_path)
    before, one, all_ = (pq.read_table(sources[name]).to_pylist() for name in ("rows", "one", "any"))
    homes = [
        {xxhash.xxh3_64_intdigest(old["id"].to_bytes(8, "little")) % 8 for old, new in pairs if old != new}
        for pairs in (zip(before, one, strict=True), zip(before, all_, strict=True))
    ]
    assert homes == [{0}, set(range(8))]
    assert sum(old != new for old, new in zip(before, one, strict=True)) == 40
    assert sum(old != new for old, new in zip(before, all_, strict=True)) == 40


def test_each_build_beside_is_compared_with_the_full_one_of_its_round() -> None:
    """Twice as fast is 2."""
    spent = {
        "full": [snapshot_beside._Spent(10.0, 8.0, 0), snapshot_beside._Spent(30.0, 8.0, 0)],
        "incremental": [snapshot_beside._Spent(5.0, 2.0, 7), snapshot_beside._Spent(10.0, 2.0, 7)],
    }
    full, other = snapshot_beside.costs(1000, 8, spent)
    assert (full.wall_ratio, full.cpu_ratio, full.taken_over) == (1.0, 1.0, 0)
    assert (other.build, other.wall_s, other.wall_ratio, other.cpu_ratio, other.taken_over) == (
        "incremental",
        7.5,
        2.5,
        4.0,
        7,
    )
