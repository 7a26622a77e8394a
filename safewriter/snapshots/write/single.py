"""Build a snapshot of one shard.

It is written as the shards of `write_sharded` are: in one task, sorted by Spark, which keeps on disk what does not fit
into memory. So there is one way to write a shard, with the same checks, and the driver holds no rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.snapshots.errors import ConfigValidationError
from safewriter.snapshots.write.build import build
from safewriter.snapshots.write.limits import RateLimits
from safewriter.snapshots.write.options import cached, overridden

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark import StorageLevel
    from pyspark.sql import DataFrame

    from safewriter.snapshots.config import WriteConfig
    from safewriter.snapshots.write.build import BuildResult
    from safewriter.snapshots.write.values import ValueSpec

__all__ = ["write_single_db"]


def write_single_db(
    df: DataFrame,
    config: WriteConfig,
    *,
    key_col: str,
    value_spec: ValueSpec,
    sort_keys: bool = True,  # noqa: ARG001 - has no effect, as the docstring says
    num_partitions: int | None = None,  # noqa: ARG001 - has no effect, as the docstring says
    prefetch_partitions: bool = True,  # noqa: ARG001 - has no effect, as the docstring says
    cache_input: bool = True,
    storage_level: StorageLevel | None = None,
    spark_conf_overrides: Mapping[str, str] | None = None,
    max_writes_per_second: float | None = None,
    max_write_bytes_per_second: float | None = None,
    step: str | None = None,
) -> BuildResult:
    """Write a snapshot of one shard and make it current, as `write_sharded` does; parameters and errors as there.

    With `config.shard_retry` the shard is written again after a `ShardWriteError`, each time to another place. Retries
    read the input again, so it is cached by default.

    Parameters
    ----------
    sort_keys, num_partitions, prefetch_partitions
        Have no effect: the shard is always sorted by its keys, and no rows come to the driver.
    """
    if config.num_dbs != 1:
        raise ConfigValidationError(f"write_single_db writes one shard; give num_dbs=1, not {config.num_dbs}")
    limits = RateLimits(max_writes_per_second, max_write_bytes_per_second)
    with (
        overridden(df.sparkSession, spark_conf_overrides),
        cached(df, cache_input=cache_input, storage_level=storage_level) as rows,
    ):
        return build(
            rows,
            config,
            key_col=key_col,
            value_spec=value_spec,
            step=step,
            limits=limits,
            retry=config.shard_retry,
        )
