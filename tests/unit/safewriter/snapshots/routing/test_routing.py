"""The hash rule of a snapshot finds the same shard for build and reader, and survives the manifest."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from safewriter.snapshots.errors import KeyRangeError
from safewriter.snapshots.routing.routing import HashRouting, routing_of

HASH = {"strategy": "hash", "hash_algorithm": "xxh3_64"}


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        (list(range(-50, 50)), pa.int64()),
        (list(range(100)), pa.int16()),
        ([f"k{number}" for number in range(100)], pa.string()),
        ([bytes([number, 255]) for number in range(100)], pa.binary()),
    ],
)
def test_a_build_and_a_reader_find_the_same_shard(keys: list[Any], kind: pa.DataType) -> None:
    """A build routes many keys at once, a reader one."""
    routing = HashRouting(7)
    assert routing.shards(pa.array(keys, kind)).tolist() == [routing.route(key) for key in keys]


def test_a_key_without_a_value_has_no_shard() -> None:
    """The message says what to do."""
    with pytest.raises(KeyRangeError, match="a key is null"):
        HashRouting(2).shards(pa.array([1, None]))


def test_a_manifest_s_rule_comes_back() -> None:
    """Null members of another rule are ignored."""
    assert routing_of(HASH, 5) == routing_of({**HASH, "cel_expr": None}, 5) == HashRouting(5)
    assert HashRouting(5).document() == HASH


@pytest.mark.parametrize(
    ("sharding", "problem"),
    [
        ({"strategy": "hash"}, "'hash' with None"),
        ({**HASH, "strategy": "range"}, "'range' with 'xxh3_64'"),
        ({**HASH, "salt": 1}, "has the member 'salt'"),
    ],
)
def test_a_rule_that_is_not_known_is_refused(sharding: dict[str, Any], problem: str) -> None:
    """Otherwise readers would look in the wrong shards."""
    with pytest.raises(ValueError, match=problem):
        routing_of(sharding, 5)
