"""Assign each row its shard, its task and its sort position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from safewriter.snapshots.routing.routing import HashRouting
from safewriter.snapshots.routing.spark_hash import with_shard
from safewriter.snapshots.write.columns import KEY, RANK, ROUTING, SHARD
from safewriter.snapshots.write.task_errors import errors_for_driver

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame

    from safewriter.snapshots.routing.routing import Routing

__all__ = ["placed", "sharded"]

_TASKS_PER_CORE: Final = 2
"""A Python task costs a tenth of a second of CPU, so if there are many shards, a task writes several."""


def sharded(rows: DataFrame, routing: Routing, job: str, *, has_integers: bool) -> DataFrame:
    """Return the rows with their shards.

    `job`: the number that `errors_of_tasks` has given the job. `has_integers`: the keys are integers; the task refuses
    negative ones.
    """
    if has_integers and isinstance(routing, HashRouting):
        return with_shard(rows, KEY, SHARD, routing.num_dbs)
    return _by_udf(rows, routing, job)


def placed(rows: DataFrame, num_dbs: int, *, shards: int, has_integers: bool, has_ranks: bool) -> DataFrame:
    """Return rows with their shards, in one partition for each task, sorted by shard and key.

    `shards`: how many of all `num_dbs` the rows have. `has_ranks`: also sort the rows of a key by rank, the highest
    first.
    """
    from pyspark.sql import functions

    tasks = max(1, min(shards, _TASKS_PER_CORE * rows.sparkSession.sparkContext.defaultParallelism))
    order = _order(num_dbs, tasks) if has_integers else [functions.col(SHARD), functions.col(KEY)]
    rank = [functions.col(RANK).desc_nulls_last()] if has_ranks else []
    return rows.repartitionById(tasks, functions.col(SHARD) % tasks).sortWithinPartitions(*order, *rank)


def _order(num_dbs: int, tasks: int) -> list[Column]:
    """Return the order by shard and key, in a form for which Spark rarely compares whole rows.

    Spark sorts by a prefix, the first column if it is a number, and compares whole rows only if their prefixes are
    equal. So the first column combines the shard and the upper bits of the key.
    """
    from pyspark.sql import functions

    key = functions.col(KEY).cast("bigint")
    if tasks == num_dbs:  # each task has one shard
        return [key]
    bits = (num_dbs - 1).bit_length()
    shard = functions.shiftleft(functions.col(SHARD).cast("bigint"), 63 - bits)
    return [shard.bitwiseOR(functions.shiftrightunsigned(key, bits)), key]


def _by_udf(rows: DataFrame, routing: Routing, job: str) -> DataFrame:
    """Return the rows with their shards, which Python processes compute by the routing."""
    from pyspark.sql.pandas.functions import arrow_udf

    shard_of = arrow_udf(_shard_function(routing, job), "int")  # type: ignore[call-overload] # its stub lacks this form
    shard: Column = shard_of(KEY, *(f"{ROUTING}{number}" for number in range(len(routing.columns))))
    return rows.select(shard.alias(SHARD), "*")


def _shard_function(routing: Routing, job: str) -> Callable[..., pa.Array]:
    def shard_of(keys: pa.Array, *columns: pa.Array) -> pa.Array:
        with errors_for_driver(job):
            return pa.array(routing.shards(keys, columns), pa.int32())

    # Spark reads the annotations, and needs types there instead of texts.
    shard_of.__annotations__.update({"keys": pa.Array, "columns": pa.Array, "return": pa.Array})
    return shard_of
