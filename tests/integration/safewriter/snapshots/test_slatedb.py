"""Snapshots whose shards are in SlateDB, built by a real Spark and read by SlateDB's own package."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.snapshots import SlateDbFactory, SnapshotReader, Source, verify
from safewriter.snapshots.errors import OtherDatabaseError, ShardWriteError
from tests.support.slatedb import needs_slatedb, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.integration.safewriter.snapshots.conftest import Build
    from tests.support.snapshot_prefix import SnapshotPrefix

pytestmark = [pytest.mark.spark, needs_slatedb]

ROWS = 5000


def test_slatedb_finds_each_row(spark: SparkSession, s3: EmbeddedS3, prefix: SnapshotPrefix, build: Build) -> None:
    """In the shards that the manifest names, whose sizes match their objects."""
    frame = spark.range(ROWS).selectExpr("id", "concat('value ', id) AS v").repartition(4)
    result = build(frame, num_dbs=3, adapter_factory=SlateDbFactory())
    assert [shard.db_id for shard in result.shards] == [0, 1, 2]
    found = verify(Source(prefix.uri), result.manifest_ref)  # before a reader adds its checkpoint
    assert (found.shards, found.unread, found.faults) == (3, 3, ())
    names = {key.split("/attempt=")[1].split("/", 1)[0] for key in prefix.data() if "/attempt=" in key}
    assert names == {shard.db_url.rsplit("attempt=", 1)[1] for shard in result.shards}
    shards = [rows_of(shard.db_url, s3) for shard in result.shards]
    assert [len(rows) for rows in shards] == [shard.row_count for shard in result.shards]
    assert {key: value for rows in shards for key, value in rows.items()} == {
        number.to_bytes(8, "big"): b"value %d" % number for number in range(ROWS)
    }
    with SnapshotReader(prefix.uri) as reader, pytest.raises(OtherDatabaseError, match="If the build had SlateDb"):
        reader.get(1)


def test_a_shard_that_slatedb_does_not_take_is_named(spark: SparkSession, prefix: SnapshotPrefix, build: Build) -> None:
    """Nothing is published, and no object is left."""
    frame = spark.range(10).selectExpr("id", "'v' AS v")
    with pytest.raises(ShardWriteError, match=r"shard \d was not written to .*SlateDB has not answered") as failed:
        build(frame, adapter_factory=SlateDbFactory(timeout_s=1, endpoint="http://127.0.0.1:9"))
    assert failed.value.db_url.startswith(f"{prefix.uri}/shards/")
    assert prefix.current() is None
    assert prefix.data() == set()
