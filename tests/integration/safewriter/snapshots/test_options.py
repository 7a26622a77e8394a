"""Options of a build, on a real Spark."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark import StorageLevel

from safewriter.snapshots.config import WriteConfig
from safewriter.snapshots.errors import ConfigValidationError
from safewriter.snapshots.read.reader import SnapshotReader
from safewriter.snapshots.sharding import ShardingSpec
from safewriter.snapshots.write.build import write_sharded
from safewriter.snapshots.write.values import binary_col
from tests.support.lake import LAKE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("lake")]

PREFIX = f"s3://{LAKE}/snapshots/options"
BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"


def counted(frame: DataFrame, folder: Path) -> DataFrame:
    """A source that writes a file for each read of a partition."""
    where = str(folder)

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        Path(where, uuid.uuid4().hex).touch()
        yield from batches

    return frame.mapInArrow(read, frame.schema)


@pytest.mark.parametrize("cache_input", [False, True])
def test_the_source_is_read_once(spark: SparkSession, tmp_path: Path, *, cache_input: bool) -> None:
    """With a cache also if the rows have to be counted first, so two reads cannot disagree."""
    frame = counted(spark.range(1000).selectExpr("id", "uuid() AS v").repartition(3), tmp_path)
    config = WriteConfig(s3_prefix=PREFIX, num_dbs=4)
    if cache_input:
        config = WriteConfig(s3_prefix=PREFIX, sharding=ShardingSpec(max_keys_per_shard=300))
    level = StorageLevel.MEMORY_ONLY if cache_input else None
    result = write_sharded(
        frame, config, key_col="id", value_spec=binary_col("v"), cache_input=cache_input, storage_level=level
    )
    assert (len(result.shards), result.stats.rows_written) == (4, 1000)
    assert len(list(tmp_path.iterdir())) == 3
    assert not frame.storageLevel.useMemory


def test_settings_hold_while_the_build_runs(spark: SparkSession) -> None:
    """They hold in its tasks, too; a setting that a session cannot change is refused."""
    frame = spark.range(10).selectExpr("id", "'v' AS v")
    config = WriteConfig(num_dbs=1, s3_prefix=PREFIX)
    before = spark.conf.get(BATCH, None)

    def built(name: str, value: str) -> None:
        write_sharded(frame, config, key_col="id", value_spec=binary_col("v"), spark_conf_overrides={name: value})

    built(BATCH, "3")
    assert spark.conf.get(BATCH, None) == before
    for name, value in {"spark.executor.memory": "1g", "spark.nope": "1", BATCH: "three"}.items():
        with pytest.raises(ConfigValidationError, match=name):
            built(name, value)


def test_a_rate_below_a_batch_does_not_hang(spark: SparkSession) -> None:
    """300 rows at 200 per second, with the first second's worth free."""
    frame = spark.range(300).selectExpr("id", "'v' AS v")
    result = write_sharded(
        frame,
        WriteConfig(num_dbs=1, s3_prefix=PREFIX),
        key_col="id",
        value_spec=binary_col("v"),
        max_writes_per_second=200,
        max_write_bytes_per_second=1e9,
    )
    assert result.shards[0].writer_info["duration_ms"] >= 500
    with SnapshotReader(PREFIX) as reader:
        assert reader.get(299) == b"v"
