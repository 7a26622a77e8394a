"""Resolve the configured rule of a build, and infer values from the data if needed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from safewriter.parsing import parsed
from safewriter.snapshots.errors import ConfigValidationError, KeyRangeError, ShardAssignmentError
from safewriter.snapshots.routing.cel import CelRouting
from safewriter.snapshots.routing.expression import KEY_VARIABLE, CelExpression
from safewriter.snapshots.routing.routing import HashRouting
from safewriter.snapshots.sharding import SHARDS_MAX, CelType, ShardingStrategy, check_shards
from safewriter.snapshots.write.columns import KEY, ROUTING, existing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from safewriter.snapshots.config import WriteConfig
    from safewriter.snapshots.routing.routing import Routing
    from safewriter.snapshots.sharding import RoutingValue, ShardingSpec

__all__ = ["routing_of_build"]

_SHOWN: Final = 5
_INTEGERS: Final = ("tinyint", "smallint", "int", "bigint")
_COLUMNS: Final = {
    CelType.INT: _INTEGERS,
    CelType.UINT: _INTEGERS,
    CelType.STRING: ("string",),
    CelType.BYTES: ("binary",),
    CelType.DOUBLE: ("float", "double"),
    CelType.BOOL: ("boolean",),
}
_FOUND: Final = pa.schema([("token", pa.string()), ("problem", pa.string())])
"""A token as JSON, or the problem of a row."""


def routing_of_build(df: DataFrame, config: WriteConfig, key_col: str) -> tuple[Routing, int | None]:
    """Return the rule, and the number of rows if it was counted for that.

    Raises `ConfigValidationError` for an invalid rule or too many shards, `ShardAssignmentError` or `KeyRangeError` for
    a row that belongs to no shard.
    """
    if config.sharding.strategy is ShardingStrategy.CEL:
        return _by_expression(df, config.sharding, key_col), None
    if config.num_dbs is not None:
        return HashRouting(config.num_dbs), None
    rows = df.count()
    num_dbs = max(1, -(-rows // (config.sharding.max_keys_per_shard or 1)))
    check_shards(num_dbs, f"max_keys_per_shard with {rows:,} rows")
    return HashRouting(num_dbs), rows


def _by_expression(df: DataFrame, sharding: ShardingSpec, key_col: str) -> CelRouting:
    expression = CelExpression.of(sharding.cel_expr or "", sharding.cel_columns)
    for name, kind in expression.variables:
        _check_column(df, key_col if name == KEY_VARIABLE else name, kind)
    if sharding.routing_values is not None:
        return CelRouting(expression, len(sharding.routing_values), tuple(sharding.routing_values))
    if sharding.infer_routing_values_from_data:
        values = _tokens(df, key_col, _Discovery(expression, numbers=False))
        return CelRouting(expression, max(1, len(values)), tuple(values))
    CelRouting(expression, 1)  # refuses texts
    if expression.shards is not None:
        check_shards(expression.shards, repr(expression.text))
        return CelRouting(expression, expression.shards)
    ids = _tokens(df, key_col, _Discovery(expression, numbers=True))
    missing = sorted(set(range(int(ids[-1]) if ids else 0)).difference(ids))
    if missing:
        shown = ", ".join(map(str, missing[:_SHOWN])) + (", …" if len(missing) > _SHOWN else "")
        raise ShardAssignmentError(
            f"{expression.text!r} gives the shards' numbers up to {ids[-1]}, but no row has {shown}. Numbers must have"
            " no gaps; for values that have some, give routing_values, or infer_routing_values_from_data"
        )
    return CelRouting(expression, max(1, len(ids)))


def _check_column(df: DataFrame, name: str, kind: CelType) -> None:
    existing(df, name)
    type_name = df.schema[name].dataType.simpleString()
    if type_name not in _COLUMNS[kind]:
        raise ConfigValidationError(
            f"the column {name!r} has the type {type_name}; as {kind} in an expression it must be one of"
            f" {', '.join(_COLUMNS[kind])}. Cast it, or give another type in cel_columns"
        )


def _tokens(df: DataFrame, key_col: str, discovery: _Discovery) -> list[RoutingValue]:
    """Return the distinct tokens of all rows, sorted, by one Spark job."""
    from pyspark.sql.pandas.types import from_arrow_schema

    columns = [existing(df, name).alias(f"{ROUTING}{at}") for at, name in enumerate(discovery.expression.columns)]
    rows = df.select(existing(df, key_col).alias(KEY), *columns)
    results = rows.mapInArrow(discovery.run, from_arrow_schema(_FOUND)).distinct().limit(SHARDS_MAX + 1).collect()
    for row in results:
        if row["problem"] is not None:
            kind, message = parsed(row["problem"])
            raise (KeyRangeError if kind == KeyRangeError.__name__ else ShardAssignmentError)(message)
    if len(results) > SHARDS_MAX:
        raise _too_many(discovery.expression)
    return sorted(parsed(row["token"]) for row in results)


@dataclass(frozen=True, slots=True)
class _Discovery:
    """Finds the tokens of a task's rows. `numbers`: the tokens are numbers of shards."""

    expression: CelExpression
    numbers: bool

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one batch: the distinct tokens, or a problem."""
        tokens: set[RoutingValue] = set()
        try:
            for batch in batches:
                tokens.update(self._of(batch))
                if len(tokens) > SHARDS_MAX:
                    raise _too_many(self.expression)
        except (KeyRangeError, ShardAssignmentError) as error:
            yield _batch([{"problem": json.dumps([type(error).__name__, str(error)])}])
        else:
            yield _batch([{"token": json.dumps(token)} for token in tokens])

    def _of(self, batch: pa.RecordBatch) -> list[RoutingValue]:
        keys = batch.column(KEY)
        columns = [batch.column(f"{ROUTING}{at}") for at in range(len(self.expression.columns))]
        tokens = self.expression.tokens(keys, columns)
        if self.numbers:
            for at, token in enumerate(tokens.values):
                if not 0 <= int(token) < SHARDS_MAX:
                    raise ShardAssignmentError(
                        f"the row with key {keys[int(tokens.first[at])].as_py()!r} gives {token!r}, and a shard has a"
                        f" number from 0 to {SHARDS_MAX - 1}"
                    )
        return tokens.values


def _too_many(expression: CelExpression) -> ShardAssignmentError:
    return ShardAssignmentError(f"{expression.text!r} gives more than {SHARDS_MAX} different values, so many shards")


def _batch(rows: list[dict[str, str]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=_FOUND)
