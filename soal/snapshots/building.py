"""Keys, values and shards of a build, from the options of its command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.snapshots.errors import ConfigValidationError
from safewriter.snapshots.sharding import ShardingSpec, ShardingStrategy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from safewriter.snapshots.write.values import ValueSpec

__all__ = ["pairs_of", "sharding_of", "value_spec_of"]


def value_spec_of(value: str | None, json_columns: Sequence[str]) -> ValueSpec:
    """Return the values: a column, columns as JSON, or all but the key as JSON. Raises `ConfigValidationError`."""
    from safewriter.snapshots.write.values import binary_col, json_cols  # their neighbours need Spark

    if value is None:
        return json_cols(json_columns or None)
    if json_columns:
        raise ConfigValidationError("--value and --json-column name two kinds of values; leave one of them out")
    return binary_col(value)


def sharding_of(
    max_keys_per_shard: int | None, cel: str | None, cel_columns: Sequence[str], *, infer_routing_values: bool
) -> ShardingSpec:
    """Return the rule: by hash, or by an expression with `NAME=TYPE` of its columns. Raises `ConfigValidationError`."""
    columns = pairs_of("--cel-column", "NAME=TYPE", cel_columns)
    return ShardingSpec(
        strategy=ShardingStrategy.HASH if cel is None else ShardingStrategy.CEL,
        max_keys_per_shard=max_keys_per_shard,
        cel_expr=cel,
        cel_columns=columns,
        infer_routing_values_from_data=infer_routing_values,
    )


def pairs_of(option: str, form: str, pairs: Sequence[str]) -> dict[str, str]:
    """Return what an option's pairs say. Raises `ConfigValidationError`."""
    found = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign:
            raise ConfigValidationError(f"{option} {pair} is not {form}")
        found[name] = value
    return found
