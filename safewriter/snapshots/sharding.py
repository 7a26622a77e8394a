"""The rules that map rows to shards: the hash of the key, or a CEL expression. The names are shardyfusion's."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import NoneType
from typing import Final

from safewriter.snapshots.checks import check_count, check_type, chosen
from safewriter.snapshots.errors import ConfigValidationError

__all__ = [
    "SHARDS_MAX",
    "CelColumn",
    "CelType",
    "RoutingValue",
    "ShardingSpec",
    "ShardingStrategy",
    "cel_sharding",
    "cel_sharding_by_columns",
    "check_routing_values",
    "check_shards",
    "check_variables",
]

RoutingValue = int | str

SHARDS_MAX: Final = 10_000
"""A manifest with this many shards fits into its bound, and a reader's memory. An expression with more is a mistake."""
_VARIABLES_MAX: Final = 100
"""The time to compile an expression grows with the square of the number of variables."""
_VARIABLE_LETTERS_MAX: Final = 256


class ShardingStrategy(StrEnum):
    """The kind of rule that maps rows to shards."""

    HASH = "hash"
    CEL = "cel"


class CelType(StrEnum):
    """The type of a variable in an expression."""

    INT = "int"
    UINT = "uint"
    STRING = "string"
    BYTES = "bytes"
    DOUBLE = "double"
    BOOL = "bool"


@dataclass(frozen=True, slots=True)
class CelColumn:
    """A column of `cel_sharding_by_columns` with its type."""

    name: str
    type: CelType = CelType.STRING


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardingSpec:
    """The rule that maps rows to shards. Raises `ConfigValidationError`.

    Parameters
    ----------
    strategy
        HASH: a key's hash, modulo the number of shards. CEL: `cel_expr`.
    max_keys_per_shard
        For HASH, instead of `num_dbs`: the number of shards follows from the number of rows.
    cel_expr
        An expression over the columns of a row. Without routing values, its result is the shard's number.
    cel_columns
        The expression's variables, with their types. `key` is the key column, whatever its name; any other variable is
        the column of that name.
    routing_values
        The allowed results of the expression; the index of a value is the number of its shard.
    infer_routing_values_from_data
        Instead of `routing_values`: all results of the expression for the data, sorted.
    """

    strategy: ShardingStrategy = ShardingStrategy.HASH
    max_keys_per_shard: int | None = None
    cel_expr: str | None = None
    cel_columns: Mapping[str, str] = field(default_factory=dict)
    routing_values: Sequence[RoutingValue] | None = None
    infer_routing_values_from_data: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "strategy", chosen("strategy", self.strategy, ShardingStrategy))
        if self.max_keys_per_shard is not None:
            check_count("max_keys_per_shard", self.max_keys_per_shard)
        check_type("cel_expr", self.cel_expr, str, NoneType)
        check_type("cel_columns", self.cel_columns, Mapping)
        object.__setattr__(self, "cel_columns", dict(self.cel_columns))
        values = self.routing_values
        check_type("routing_values", values, Sequence, NoneType)
        if self.strategy is ShardingStrategy.HASH:
            if self.cel_expr or self.cel_columns or values is not None or self.infer_routing_values_from_data:
                raise ConfigValidationError("an expression and its routing values need strategy=ShardingStrategy.CEL")
            return
        if self.max_keys_per_shard is not None:
            raise ConfigValidationError("max_keys_per_shard is for hashed keys; here the expression decides")
        if not self.cel_expr or not self.cel_columns:
            raise ConfigValidationError("strategy CEL needs cel_expr, and cel_columns with each variable's type")
        check_variables(self.cel_columns)
        if values is not None:
            if self.infer_routing_values_from_data:
                raise ConfigValidationError("give routing_values, or infer_routing_values_from_data, and not both")
            if not values:
                raise ConfigValidationError("routing_values is empty, so no row would have a shard")
            check_routing_values(values)


def cel_sharding(
    expr: str, columns: Mapping[str, str], *, routing_values: Sequence[RoutingValue] | None = None
) -> ShardingSpec:
    """Route by an expression: `cel_sharding("key % 4", {"key": "int"})`."""
    return ShardingSpec(
        strategy=ShardingStrategy.CEL, cel_expr=expr, cel_columns=columns, routing_values=routing_values
    )


def cel_sharding_by_columns(
    *columns: str | CelColumn, num_shards: int | None = None, separator: str = ":"
) -> ShardingSpec:
    """Route by the values of columns: by their hash with `num_shards`, else each distinct value has its own shard.

    A column that is given by name only is text.
    """
    if not columns:
        raise ConfigValidationError("cel_sharding_by_columns needs a column")
    if num_shards is not None:
        check_count("num_shards", num_shards)
    typed = [CelColumn(column) if isinstance(column, str) else column for column in columns]
    as_is = {CelType.STRING}
    if len(typed) == 1:
        as_is |= {CelType.INT, CelType.UINT}
        if num_shards is not None:  # else the manifest would have to hold bytes
            as_is.add(CelType.BYTES)
    # CEL parses the escapes of JSON, but not its surrogate pairs.
    between = f" + {json.dumps(separator, ensure_ascii=False)} + "
    value = between.join(column.name if column.type in as_is else f"string({column.name})" for column in typed)
    return ShardingSpec(
        strategy=ShardingStrategy.CEL,
        cel_expr=value if num_shards is None else f"shard_hash({value}) % {num_shards}u",
        cel_columns={column.name: column.type for column in typed},
        infer_routing_values_from_data=num_shards is None,
    )


def check_shards(number: int, setting: str) -> None:
    """Raise `ConfigValidationError` for more than `SHARDS_MAX` shards. `setting`: the setting that asks for them."""
    if number > SHARDS_MAX:
        raise ConfigValidationError(f"{setting} asks for {number:,} shards; a snapshot has {SHARDS_MAX:,} at most")


def check_variables(columns: Mapping[str, object]) -> None:
    """Raise `ConfigValidationError` for too many variables, or for one with an invalid name or type."""
    longest = max(map(len, columns), default=0)
    if len(columns) > _VARIABLES_MAX or longest > _VARIABLE_LETTERS_MAX:
        raise ConfigValidationError(
            f"cel_columns has {len(columns):,} columns with names of up to {longest:,} letters; {_VARIABLES_MAX}"
            f" columns and {_VARIABLE_LETTERS_MAX} letters are allowed. Name those that the expression reads"
        )
    for name, kind in columns.items():
        if not (name.isascii() and name.isidentifier()):
            raise ConfigValidationError(f"cel_columns: {name!r} is no name of a variable in CEL; rename the column")
        if kind not in list(CelType):
            raise ConfigValidationError(f"cel_columns: {name!r} has the type {kind!r}, none of {', '.join(CelType)}")


def check_routing_values(values: Sequence[object]) -> None:
    """Raise `ConfigValidationError` unless the values are distinct, and all integers or all texts."""
    check_shards(len(values), "routing_values")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise ConfigValidationError(f"the routing value {value!r} is neither an integer nor a text")
        if type(value) is not type(values[0]):
            raise ConfigValidationError(f"the routing values {values[0]!r} and {value!r} have different types")
    if len(set(values)) != len(values):
        ((doubled, _),) = Counter(values).most_common(1)
        raise ConfigValidationError(f"the routing value {doubled!r} is there twice")
