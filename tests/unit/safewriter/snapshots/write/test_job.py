"""The Spark job of a snapshot's build takes only tasks' results that together cover every row and shard."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from safewriter.snapshots.config import Duplicates
from safewriter.snapshots.errors import ShardCoverageError
from safewriter.snapshots.format.encoding import KeyEncoding
from safewriter.snapshots.routing.routing import HashRouting
from safewriter.snapshots.write.job import BuildJob
from safewriter.snapshots.write.paths import Paths
from safewriter.snapshots.write.row_digest import DigestRule
from safewriter.snapshots.write.rows import RowFormat
from safewriter.snapshots.write.unchanged import Comparison
from safewriter.snapshots.write.values import binary_col

JOB = BuildJob(
    Paths("s3://lake/kv", "shards", "r", "db={db_id:05d}", "b"),
    RowFormat(HashRouting(4), KeyEncoding.U64BE, binary_col("v"), "id"),
    Duplicates.ANY,
    "",
    None,
)
KEY = (5).to_bytes(8, "big")
SUMS = [1, 2, 3, 4]


def shard(db_id: int, **changes: Any) -> Any:
    told: dict[str, Any] = {
        "db_id": db_id,
        "rows": 10,
        "kept": 8,
        "stored": 8,
        "db_url": f"s3://lake/kv/{db_id}",
        "attempt": 0,
        "db_bytes": 4096,
        "min_key": KEY,
        "max_key": KEY,
        "checkpoint_id": "c",
        "stage_id": 1,
        "task_attempt_id": 2,
        "duration_ms": 3,
        "sha256": "0" * 64,
    }
    return {**told, **changes}


def task(rows: int) -> Any:
    return {"db_id": None, "rows": rows, "kept": None, "stored": None, "waited_ms": 0}


def checked(found: list[Any], rows_read: int = 20) -> tuple[int, ...]:
    return tuple(one.db_id for one in JOB._checked(found, rows_read))


def test_shards_of_which_each_row_is_known_are_taken_in_order() -> None:
    """The manifest counts the rows without duplicates; a shard without rows is left out."""
    assert checked([shard(3), shard(1), task(20), task(0)]) == (1, 3)
    (one,) = JOB._checked([shard(1), task(10)], 10)
    assert (one.row_count, one.min_key, one.writer_info["task_attempt_id"]) == (8, 5, 2)


def rule() -> DigestRule:
    return DigestRule("rule")


def incremental(same: dict[int, Any]) -> BuildJob:
    """A job after a first reading: shard 2 of the current snapshot has the same 4 rows; shard 1 has 10 to write."""
    found = {1: rule().digest(10, SUMS), 2: "same"}
    return replace(JOB, is_incremental=True, comparison=Comparison(14, found, same, 4))


def test_a_snapshot_has_the_shards_that_are_written_and_those_taken_over() -> None:
    """In order, and each written one with its digest, for the next build."""
    (old,) = JOB._checked([shard(2), task(10)], 10)
    found = incremental({2: old})._checked([shard(1, sums=SUMS), task(10)], 14, rule())
    assert found[1] is old
    assert found[0].writer_info["rows_digest"] == rule().digest(10, SUMS)
    assert "rows_digest" not in old.writer_info


@pytest.mark.parametrize(
    "results",
    [
        pytest.param([shard(1, sums=[1, 2, 3, 5]), task(10)], id="a written shard has other rows than were read first"),
        pytest.param([shard(2, sums=SUMS), task(10)], id="a shard is written that is taken over"),
        pytest.param([shard(3, sums=SUMS), task(10)], id="a row has moved to another shard"),
        pytest.param([shard(1, rows=11, sums=SUMS), task(11)], id="a row has come"),
    ],
)
def test_an_incremental_build_whose_source_has_changed_is_not_published(results: list[Any]) -> None:
    """The shards that it takes over are of the first reading, so the others have to be."""
    (old,) = JOB._checked([shard(2), task(10)], 10)
    with pytest.raises(ShardCoverageError, match=r"[Nn]othing was published"):
        incremental({2: old})._checked(results, 14, rule())


@pytest.mark.parametrize(
    ("found", "rows_read"),
    [
        pytest.param([shard(1), task(20)], 20, id="a shard is not there"),
        pytest.param([shard(1), shard(3)], 20, id="no task has answered"),
        pytest.param([shard(1), shard(3), task(10)], 20, id="a task has not answered"),
        pytest.param([shard(1), shard(3), task(20)], 21, id="a row was read and did not come"),
        pytest.param([shard(1, stored=7), shard(3), task(20)], 20, id="a row is not in its file"),
        pytest.param([shard(1), shard(1), task(20)], 20, id="a shard is there twice"),
        pytest.param([shard(1), shard(4), task(20)], 20, id="a shard beyond the last"),
        pytest.param([shard(1), shard(-1), task(20)], 20, id="a shard before the first"),
        pytest.param([], 1, id="nothing has answered"),
    ],
)
def test_a_build_that_lacks_anything_is_not_published(found: list[Any], rows_read: int) -> None:
    """A lost shard is not taken for an empty one."""
    with pytest.raises(ShardCoverageError, match=r"[Nn]othing was published"):
        checked(found, rows_read)
