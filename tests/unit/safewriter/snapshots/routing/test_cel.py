"""A CEL expression routes the keys of a snapshot to the same shards for build and reader, or is refused."""

from __future__ import annotations

import pickle
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from safewriter.snapshots.errors import (
    ConfigValidationError,
    KeyRangeError,
    MissingPackageError,
    RoutingContextError,
    ShardAssignmentError,
)
from safewriter.snapshots.routing.cel import CelRouting
from safewriter.snapshots.routing.expression import CelExpression
from safewriter.snapshots.routing.routing import HashRouting, routing_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from safewriter.snapshots.sharding import RoutingValue


def routing(text: str, num_dbs: int, values: Sequence[RoutingValue] | None = None, /, **columns: str) -> CelRouting:
    return CelRouting(CelExpression.of(text, columns), num_dbs, None if values is None else tuple(values))


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        (pa.array([0, 1, -1, 42, 2**63 - 1, -(2**63)]), "int"),
        (pa.array(["", "a", "hello", "café"]), "string"),
        (pa.array([b"", b"\x00", b"\xff\x00"]), "bytes"),
    ],
)
def test_its_hash_is_that_of_hashed_keys(keys: pa.Array, kind: str) -> None:
    """`shard_hash(key) % 4u` is the rule of a snapshot without an expression, which golden vectors test."""
    by_cel = routing("shard_hash(key) % 4u", 4, key=kind)
    assert by_cel.shards(keys).tolist() == HashRouting(4).shards(keys).tolist()
    assert [by_cel.route(key) for key in keys.to_pylist()] == HashRouting(4).shards(keys).tolist()


def test_an_expression_may_give_the_shard_s_number() -> None:
    """Build and reader agree; a key that the build refuses has no shard for the reader."""
    rule = routing("key % 3", 3, key="int")
    assert rule.shards(pa.array([0, 1, 2, 3])).tolist() == [0, 1, 2, 0]
    assert [rule.route(key) for key in (0, 1, 2, 3, -1)] == [0, 1, 2, 0, None]


@pytest.mark.parametrize(("key", "given"), [(-4, "-1"), (3, "3")])
def test_a_number_that_is_no_shard_s_is_refused_with_its_row(key: int, given: str) -> None:
    """This includes a negative number, which a count of distinct numbers would not show."""
    rule = routing("key > 0 ? key : key % 3", 3, key="int")
    with pytest.raises(ShardAssignmentError, match=f"the row with key {key} gives {given}, which is no shard of 3"):
        rule.shards(pa.array([1, 2, key]))


def test_an_expression_may_give_a_value_whose_place_is_the_shard() -> None:
    """Values match exactly; for others the build fails, and a reader finds nothing."""
    rule = routing("region", 2, ["us", "eu"], region="string")
    keys = pa.array([1, 2, 3])
    assert rule.shards(keys, [pa.array(["eu", "us", "eu"])]).tolist() == [1, 0, 1]
    with pytest.raises(ShardAssignmentError, match=r"key 3 gives 'EU', which is no one of 2 routing values.*cached"):
        rule.shards(keys, [pa.array(["eu", "us", "EU"])])
    assert [rule.route(1, {"region": region}) for region in ("us", "eu", "EU")] == [0, 1, None]


def test_a_rule_of_several_columns_needs_each_of_them_at_reading() -> None:
    """The key is always known; unneeded columns are ignored."""
    rule = routing("region == 'eu' ? key % 2 : tier", 2, region="string", tier="int", key="int")
    assert rule.columns == ("region", "tier")
    assert rule.route(5, {"region": "eu", "tier": 0, "key": 4, "more": 1}) == 1
    with pytest.raises(RoutingContextError, match=r"routes by region, tier .* and 'tier' was not given"):
        rule.route(5, {"region": "eu"})
    with pytest.raises(RoutingContextError, match="'region' was not given; give routing_context"):
        rule.route(5)
    with pytest.raises(RoutingContextError, match="tier is '1', and has not the type int"):
        rule.route(5, {"region": "us", "tier": "1"})
    with pytest.raises(RoutingContextError, match="tier is True"):
        rule.route(5, {"region": "us", "tier": True})
    with pytest.raises(KeyRangeError, match="the key '5' has not the type int"):
        rule.route("5", {"region": "us", "tier": 1})


@pytest.mark.parametrize("kind", ["string", "bytes"])
def test_a_text_and_its_bytes_are_one_key(kind: str) -> None:
    """This is also so for hashed keys and for stored keys."""
    rule = routing("key.startsWith('d') ? 1 : 0" if kind == "string" else "size(key) > 4 ? 1 : 0", 2, key=kind)
    assert [rule.route(key) for key in ("döner", "döner".encode(), "tee", b"tee")] == [1, 1, 0, 0]
    if kind == "string":
        with pytest.raises(KeyRangeError, match="is no text"):
            rule.route(b"\xff")


def test_a_reader_finds_nothing_where_a_build_would_have_failed() -> None:
    """The expression has no value for such a row, so no shard has it."""
    assert routing("{'eu': 1}[region]", 2, region="string").route(1, {"region": "us"}) is None
    assert routing("key", 2, key="int").route(2**70) is None


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("region", 2), "gives texts, and no shards' numbers: give routing_values"),
        (("region", 2, [1, 2]), "the routing value 1 has not the type string"),
        (("tier", 2, ["a", "b"]), "the routing value 'a' has not the type int"),
        (("region", 3, ["a", "b"]), "there are 2 routing values for 3 shards"),
        (("region", 2, ["a", "a"]), "'a' is there twice"),
    ],
)
def test_routing_values_fit_the_expression(arguments: tuple[Any, ...], problem: str) -> None:
    """Otherwise no row would have a shard."""
    with pytest.raises(ConfigValidationError, match=problem):
        routing(*arguments, region="string", tier="int")


DIRECT = {
    "strategy": "cel",
    "hash_algorithm": "xxh3_64",
    "cel_expr": "shard_hash(key) % 4u",
    "cel_columns": {"key": "int"},
}
CATEGORICAL = {
    **DIRECT,
    "cel_expr": "region",
    "cel_columns": {"region": "string"},
    "routing_values": ["eu", "us"],
}


@pytest.mark.parametrize(
    ("document", "num_dbs"), [(DIRECT, 4), (CATEGORICAL, 2), ({**CATEGORICAL, "routing_values": []}, 1)]
)
def test_a_manifest_s_rule_comes_back(document: dict[str, Any], num_dbs: int) -> None:
    """It is equal after a round trip through a manifest, and on an executor."""
    rule = routing_of(document, num_dbs)
    assert rule.document() == document
    assert routing_of(rule.document(), num_dbs) == rule
    assert pickle.loads(pickle.dumps(rule)) == rule  # noqa: S301 - our own
    assert pickle.loads(pickle.dumps(rule)).route(42, {"region": "us"}) == rule.route(42, {"region": "us"})  # noqa: S301 - as above


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({**DIRECT, "hash_algorithm": None}, "'cel' with None"),
        ({**DIRECT, "cel_expr": None}, "lacks an expression"),
        ({**DIRECT, "cel_columns": ["key"]}, "lacks an expression"),
        ({**DIRECT, "cel_columns": {"key": "long"}}, "'key' has the type 'long'"),
        ({**DIRECT, "cel_expr": "nobody"}, "undeclared reference"),
        ({**CATEGORICAL, "routing_values": ["eu"]}, "1 routing values for 2 shards"),
        ({**CATEGORICAL, "routing_values": "eu"}, "lacks an expression"),
        ({**CATEGORICAL, "routing_values": ["eu", None]}, "None is neither"),
        ({**CATEGORICAL, "salt": 1}, "has the member 'salt'"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(document: dict[str, Any], problem: str) -> None:
    """Otherwise readers would look in the wrong shards."""
    with pytest.raises(ValueError, match=problem):
        routing_of(document, 2)


def test_a_reader_without_the_library_does_not_take_the_manifest_for_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "cel_expr_python", None)
    with pytest.raises(MissingPackageError, match="install"):
        routing_of(DIRECT, 4)
    assert routing_of({"strategy": "hash", "hash_algorithm": "xxh3_64"}, 4) == HashRouting(4)
