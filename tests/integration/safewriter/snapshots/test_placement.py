"""Spark places each row where a build expects it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from safewriter.snapshots.routing.routing import HashRouting
from safewriter.snapshots.routing.spark_hash import with_shard
from safewriter.snapshots.write.columns import KEY, SHARD
from safewriter.snapshots.write.options import overridden
from safewriter.snapshots.write.placement import placed, sharded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

_CHANCE = random.Random(19)  # noqa: S311 - not for security
SPREAD = [_CHANCE.randrange(2**63) for _ in range(2000)]
EDGES = [0, 1, -1, 42, 2**31, 2**32 - 1, 2**32, -(2**31), 2**63 - 1, -(2**63)]


@pytest.mark.parametrize("is_ansi", ["true", "false"])
def test_spark_gives_a_key_the_shard_that_its_task_checks(spark: SparkSession, is_ansi: str) -> None:
    """For keys and digests of either sign, and also where Spark refuses a sum that is too large."""
    keys = [*EDGES, *SPREAD, *(-key for key in SPREAD)]
    rows = spark.createDataFrame([(key,) for key in keys], "key bigint")
    with overridden(spark, {"spark.sql.ansi.enabled": is_ansi}):
        for num_dbs in (7, 65_536):
            found = [row["shard"] for row in with_shard(rows, "key", "shard", num_dbs).collect()]
            assert found == HashRouting(num_dbs).shards(pa.array(keys, pa.int64())).tolist()


@pytest.mark.parametrize("num_dbs", [2, 64, 1000])
@pytest.mark.parametrize("keys", [range(3000), [*SPREAD, 0, 1, 2, 2**63 - 1, 2**63 - 2]])
def test_a_partition_has_its_shards_one_after_the_other(spark: SparkSession, num_dbs: int, keys: Iterable[int]) -> None:
    """Each shard is complete, and its keys ascend: adjacent keys, and keys from the whole range."""
    rows = spark.createDataFrame([(key,) for key in keys], f"{KEY} bigint")
    with_shards = sharded(rows, HashRouting(num_dbs), "job", has_integers=True)
    moved = placed(with_shards, num_dbs, shards=num_dbs, has_integers=True, has_ranks=False)
    partitions = moved.rdd.glom().collect()
    found = [[(row[SHARD], row[KEY]) for row in partition] for partition in partitions]
    assert all(partition == sorted(partition) for partition in found)
    shards = [{shard for shard, _ in partition} for partition in found]
    assert sum(map(len, shards)) == len(set().union(*shards))
    assert sorted(key for partition in found for _, key in partition) == sorted(keys)
