"""The sharding rule of a snapshot, by hash, CEL expression or columns, is valid or refused by its setting."""

from __future__ import annotations

from typing import Any

import pytest

from safewriter.snapshots.config import WriteConfig
from safewriter.snapshots.errors import ConfigValidationError
from safewriter.snapshots.sharding import (
    CelColumn,
    CelType,
    ShardingSpec,
    ShardingStrategy,
    cel_sharding,
    cel_sharding_by_columns,
)

CEL: dict[str, Any] = {"strategy": ShardingStrategy.CEL, "cel_expr": "key", "cel_columns": {"key": "int"}}


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"max_keys_per_shard": 0}, "max_keys_per_shard is 0"),
        ({"max_keys_per_shard": 1.5}, "max_keys_per_shard is 1.5"),
        ({"max_keys_per_shard": "8"}, "max_keys_per_shard is '8'"),
        ({"strategy": "range"}, "strategy is 'range', none of hash, cel"),
        ({**CEL, "cel_expr": 3}, "cel_expr is 3"),
        ({**CEL, "cel_columns": ["key"]}, "cel_columns is"),
        ({**CEL, "routing_values": 5}, "routing_values is 5"),
        ({**CEL, "strategy": ShardingStrategy.HASH}, "need strategy=ShardingStrategy.CEL"),
        ({"routing_values": [1]}, "need strategy=ShardingStrategy.CEL"),
        ({"infer_routing_values_from_data": True}, "need strategy=ShardingStrategy.CEL"),
        ({**CEL, "max_keys_per_shard": 5}, "the expression decides"),
        ({**CEL, "cel_expr": ""}, "needs cel_expr, and cel_columns"),
        ({**CEL, "cel_columns": {}}, "needs cel_expr, and cel_columns"),
        ({**CEL, "cel_columns": {"key": "long"}}, "'key' has the type 'long', none of int, uint, string"),
        ({**CEL, "cel_columns": {"user id": "int"}}, "'user id' is no name of a variable"),
        ({**CEL, "routing_values": []}, "routing_values is empty"),
        ({**CEL, "routing_values": [1], "infer_routing_values_from_data": True}, "and not both"),
        ({**CEL, "routing_values": ["a", 1]}, "'a' and 1 have different types"),
        ({**CEL, "routing_values": ["a", "b", "a"]}, "'a' is there twice"),
        ({**CEL, "routing_values": [True]}, "True is neither an integer nor a text"),
        ({**CEL, "routing_values": [None]}, "None is neither"),
        ({**CEL, "routing_values": [b"a"]}, "b'a' is neither"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_by_its_setting(settings: dict[str, Any], problem: str) -> None:
    """This needs neither Spark nor the CEL library."""
    with pytest.raises(ConfigValidationError, match=problem):
        ShardingSpec(**settings)


def test_an_expression_decides_how_many_shards_there_are() -> None:
    """`num_dbs` beside an expression is refused."""
    with pytest.raises(ConfigValidationError, match="num_dbs must be None"):
        WriteConfig(num_dbs=2, s3_prefix="s3://bucket/prefix", sharding=ShardingSpec(**CEL))
    assert WriteConfig(s3_prefix="s3://bucket/prefix", sharding=ShardingSpec(**CEL)).num_dbs is None


def test_a_rule_by_an_expression() -> None:
    """The expression gives the shard's number, or one of the routing values."""
    assert cel_sharding("key", {"key": "int"}) == ShardingSpec(**CEL)
    assert cel_sharding("key", {"key": CelType.INT}, routing_values=[5, 7]) == ShardingSpec(
        **CEL, routing_values=[5, 7]
    )


@pytest.mark.parametrize(
    ("columns", "options", "expression"),
    [
        (["region"], {}, "region"),
        (["region"], {"num_shards": 10}, "shard_hash(region) % 10u"),
        ([CelColumn("tier", CelType.INT)], {"num_shards": 4}, "shard_hash(tier) % 4u"),
        ([CelColumn("tier", CelType.INT)], {}, "tier"),
        ([CelColumn("code", CelType.BYTES)], {"num_shards": 4}, "shard_hash(code) % 4u"),
        ([CelColumn("code", CelType.BYTES)], {}, "string(code)"),
        ([CelColumn("rate", CelType.DOUBLE)], {"num_shards": 4}, "shard_hash(string(rate)) % 4u"),
        (
            ["region", CelColumn("tier", CelType.INT)],
            {"num_shards": 8},
            'shard_hash(region + ":" + string(tier)) % 8u',
        ),
        (["a", "b"], {"separator": '"😀\n'}, 'a + "\\"😀\\n" + b'),
    ],
)
def test_a_rule_by_columns(columns: list[Any], options: dict[str, Any], expression: str) -> None:
    """Rows are routed by the columns' hash, or each combination of values has its own shard."""
    spec = cel_sharding_by_columns(*columns, **options)
    assert spec.cel_expr == expression
    assert spec.infer_routing_values_from_data is ("num_shards" not in options)
    assert list(spec.cel_columns) == [one if isinstance(one, str) else one.name for one in columns]


@pytest.mark.parametrize(
    ("columns", "options", "problem"), [([], {}, "needs a column"), (["a"], {"num_shards": 0}, "num_shards is 0")]
)
def test_a_rule_by_columns_needs_both(columns: list[str], options: dict[str, Any], problem: str) -> None:
    """It needs at least one column, and at least one shard."""
    with pytest.raises(ConfigValidationError, match=problem):
        cel_sharding_by_columns(*columns, **options)
