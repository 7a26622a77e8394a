"""Streams of a victim, and the rows of their tables."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from safewriter import SafeWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["STREAMS", "rows_of"]

_GROUPS: Final = 3
_PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
_STATE: Final = "org.apache.spark.sql.execution.streaming.state"


def _run(spark: SparkSession, table: str, provider: str | None) -> None:
    """Load all new files of `table`-source into the table, each batch guarded, and end.

    Without a state provider it writes the rows, else the number of rows so far by remainder.
    """
    mode = "append" if provider is None else "overwrite"

    def write(frame: DataFrame, _: int) -> None:
        with SafeWriter(frame.sparkSession, table) as block:
            frame.write.format("delta").mode(mode).save(block.table)
            block.success()

    frame = spark.readStream.format("delta").load(f"{table}-source")
    if provider is not None:
        spark.conf.set(_PROVIDER, f"{_STATE}.{provider}")
        frame = frame.groupBy((F.col("id") % _GROUPS).alias("part")).count()
    try:
        query = (
            frame.writeStream.foreachBatch(write)
            .outputMode("append" if provider is None else "complete")
            .option("checkpointLocation", f"{table}-checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    finally:
        spark.conf.unset(_PROVIDER)


STREAMS: Final[dict[str, Callable[[SparkSession, str], None]]] = {
    "rows": partial(_run, provider=None),
    "counts": partial(_run, provider="HDFSBackedStateStoreProvider"),
    "counts-in-rocksdb": partial(_run, provider="RocksDBStateStoreProvider"),
}


def rows_of(name: str, ids: Iterable[int]) -> list[tuple[int, ...]]:
    """Return the rows of a stream's table after it has processed these ids."""
    if name == "rows":
        return sorted((one,) for one in ids)
    return sorted(Counter(one % _GROUPS for one in ids).items())
