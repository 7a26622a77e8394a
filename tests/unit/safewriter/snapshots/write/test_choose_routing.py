"""A task's discovery of tokens; tests/integration/safewriter/snapshots/test_cel.py tests it with Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from safewriter.snapshots.routing.expression import CelExpression
from safewriter.snapshots.sharding import SHARDS_MAX
from safewriter.snapshots.write.choose_routing import _Discovery
from safewriter.snapshots.write.columns import KEY, ROUTING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def batches(*regions: Sequence[str | None]) -> list[pa.RecordBatch]:
    found, key = [], 0
    for region in regions:
        keys = list(range(key, key + len(region)))
        key += len(region)
        found.append(pa.record_batch({KEY: pa.array(keys, pa.int64()), f"{ROUTING}0": pa.array(region, pa.string())}))
    return found


def by_region(text: str = "region", *, numbers: bool = False) -> _Discovery:
    return _Discovery(CelExpression.of(text, {"region": "string", "key": "int"}), numbers=numbers)


def test_a_task_tells_each_token_once() -> None:
    """Repetitions in rows and batches do not matter."""
    (told,) = by_region().run(batches(["eu", "us", "eu"], ["us", "日本"], []))
    assert sorted(told["token"].to_pylist()) == sorted(json.dumps(token) for token in ("eu", "us", "日本"))
    assert told["problem"].null_count == 3


@pytest.mark.parametrize(
    ("discovery", "kind", "problem"),
    [
        (by_region(), "ShardAssignmentError", "the row with key 1 has no shard: 'region'"),
        (by_region("key - 2", numbers=True), "ShardAssignmentError", "the row with key 0 gives -2, and a shard has"),
        (by_region(f"key + {SHARDS_MAX - 1}", numbers=True), "ShardAssignmentError", f"key 1 gives {SHARDS_MAX}, and"),
    ],
)
def test_a_task_tells_what_is_wrong_with_a_row(discovery: _Discovery, kind: str, problem: str) -> None:
    """It returns the problem as a row, so that the driver raises it, and Spark does not retry the task."""
    (told,) = discovery.run(batches(["eu", None, "us"]))
    assert told["token"].to_pylist() == [None]
    found, message = json.loads(told["problem"][0].as_py())
    assert found == kind
    assert problem in message


def test_a_key_without_a_value_is_told_as_such() -> None:
    """The task reports a `KeyRangeError`, and no error of routing."""
    nothing = pa.record_batch({KEY: pa.array([None], pa.int64()), f"{ROUTING}0": pa.array(["eu"])})
    (told,) = by_region().run([nothing])
    assert json.loads(told["problem"][0].as_py())[0] == "KeyRangeError"


def test_a_task_stops_at_more_tokens_than_shards_can_be() -> None:
    """Otherwise an expression with a distinct value for each key would fill the memory."""
    read = []

    def many() -> Iterator[pa.RecordBatch]:
        for batch in batches(*([f"{number}-{row}" for row in range(SHARDS_MAX // 2 + 1)] for number in range(3))):
            read.append(batch)
            yield batch

    (told,) = by_region().run(many())
    assert f"gives more than {SHARDS_MAX} different values" in told["problem"][0].as_py()
    assert len(read) == 2
