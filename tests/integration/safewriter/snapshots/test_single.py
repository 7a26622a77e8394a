"""Snapshots of one shard, built by a real Spark."""

from __future__ import annotations

import json
import threading
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

from safewriter.snapshots.config import RetryConfig, WriteConfig
from safewriter.snapshots.errors import ConfigValidationError, ShardWriteError
from safewriter.snapshots.format.encoding import KeyEncoding
from safewriter.snapshots.sharding import ShardingSpec
from safewriter.snapshots.write.build import write_single_db
from safewriter.snapshots.write.values import binary_col

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from tests.support.snapshot_prefix import SnapshotPrefix

pytestmark = pytest.mark.spark

RETRY = RetryConfig(max_retries=2, initial_backoff_s=0)


class Adapter:
    """Stores a shard as lines of a local file; its first attempts fail."""

    def __init__(self, folder: str, failures: int, db_url: str) -> None:
        self._folder, self._failures, self._url = Path(folder), failures, db_url
        self._rows: list[tuple[str, str]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def write_batch(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        self._rows += [(key.hex(), value.decode()) for key, value in pairs]
        if len(list(self._folder.iterdir())) < self._failures:
            (self._folder / uuid.uuid4().hex).write_text(json.dumps({"url": self._url}))
            raise OSError("no space")

    def flush(self) -> None: ...

    def seal(self) -> None:
        (self._folder / "whole").write_text(json.dumps({"url": self._url, "rows": self._rows}))

    def db_bytes(self) -> int:
        return 4711

    def close(self) -> None: ...


def factory(folder: Path, failures: int) -> Any:
    where = str(folder)

    def opened(*, db_url: str, local_dir: Path) -> Adapter:
        assert list(local_dir.iterdir()) == []
        return Adapter(where, failures, db_url)

    return opened


def test_a_shard_is_written_in_the_order_of_its_keys(spark: SparkSession, prefix: SnapshotPrefix) -> None:
    """Keys of bytes have no place in the manifest, and any bytes are keys."""
    frame = spark.range(3000).selectExpr("unhex(sha2(string(id), 256)) AS id", "string(id) AS v").repartition(5)
    config = WriteConfig(num_dbs=1, s3_prefix=prefix.uri, key_encoding=KeyEncoding.RAW)
    result = write_single_db(frame, config, key_col="id", value_spec=binary_col("v"))
    (shard,) = result.shards
    assert (shard.row_count, shard.min_key, shard.max_key) == (3000, None, None)
    found = prefix.published()
    assert found is not None
    rows = found.shards[0]
    assert len(rows) == 3000
    assert list(rows) == sorted(rows)
    assert not frame.storageLevel.useMemory


def test_another_database_may_take_the_shard(spark: SparkSession, prefix: SnapshotPrefix, tmp_path: Path) -> None:
    """It gets the rows in order; a failed attempt is repeated, each time at another place."""
    frame = spark.range(100).selectExpr("99 - id AS id", "string(99 - id) AS v")
    config = WriteConfig(
        num_dbs=1, s3_prefix=prefix.uri, adapter_factory=factory(tmp_path, failures=2), shard_retry=RETRY
    )
    result = write_single_db(frame, config, key_col="id", value_spec=binary_col("v"))
    whole = json.loads((tmp_path / "whole").read_text())
    assert whole["rows"] == [[f"{number:016x}", str(number)] for number in range(100)]
    (shard,) = result.shards
    assert (shard.db_url, shard.db_bytes, shard.row_count, shard.attempt) == (whole["url"], 4711, 100, 2)
    assert len({json.loads(file.read_text())["url"] for file in tmp_path.iterdir()}) == 3


def test_a_shard_that_is_not_written_is_named(spark: SparkSession, prefix: SnapshotPrefix, tmp_path: Path) -> None:
    """The error has its number, its place and its rows, after all attempts have failed; nothing is published."""
    frame = spark.range(10).selectExpr("id", "'v' AS v")
    config = WriteConfig(
        num_dbs=1, s3_prefix=prefix.uri, adapter_factory=factory(tmp_path, failures=9), shard_retry=RETRY
    )
    with pytest.raises(ShardWriteError, match=r"OSError\('no space'\)") as failed:
        write_single_db(frame, config, key_col="id", value_spec=binary_col("v"))
    error = failed.value
    assert (error.db_id, error.rows_written, error.attempt[:3], error.retryable) == (0, 0, "02-", True)
    assert error.db_url.endswith(f"/db=00000/attempt={error.attempt}")
    assert len(list(tmp_path.iterdir())) == 3


def test_a_build_that_is_not_of_one_shard_is_refused(spark: SparkSession, prefix: SnapshotPrefix) -> None:
    """So is an adapter that cannot be pickled, before anything is read."""
    frame = spark.range(1).selectExpr("id", "assert_true(false) AS v")
    for config in (
        WriteConfig(num_dbs=2, s3_prefix=prefix.uri),
        WriteConfig(sharding=ShardingSpec(max_keys_per_shard=5), s3_prefix=prefix.uri),
    ):
        with pytest.raises(ConfigValidationError, match="give num_dbs=1, not"):
            write_single_db(frame, config, key_col="id", value_spec=binary_col("v"))
    lock = threading.Lock()

    def opened(*, db_url: str, local_dir: Path) -> Any:
        return lock

    config = WriteConfig(num_dbs=1, s3_prefix=prefix.uri, adapter_factory=opened)
    with pytest.raises(ConfigValidationError, match=r"adapter_factory: .*opened cannot travel"):
        write_single_db(frame, config, key_col="id", value_spec=binary_col("v"))
