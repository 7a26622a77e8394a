"""Snapshots built by a real Spark, and judged by SQLite and xxhash themselves."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
import xxhash

from safewriter.coordination import Configuration, End, JobCoordinator
from safewriter.coordination.backends.memory import MemoryBackend
from safewriter.coordination.record import OpenWrite
from safewriter.coordination.transitions import end
from safewriter.errors import TurnLostError
from safewriter.objects.s3 import open_store
from safewriter.snapshots.config import WriteConfig
from safewriter.snapshots.errors import PublishConflictError
from safewriter.snapshots.format.encoding import KeyEncoding
from safewriter.snapshots.read.reader import SnapshotReader
from safewriter.snapshots.write.build import write_sharded
from safewriter.snapshots.write.job import Job
from safewriter.snapshots.write.publish import Publisher
from safewriter.snapshots.write.values import binary_col
from tests.support.lake import LAKE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from safewriter.snapshots.write.job import Written
    from scripts.emulator.s3 import EmbeddedS3

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("lake")]

ROWS = 5000
PREFIX = f"s3://{LAKE}/snapshots/kv"


def shards_of(s3: EmbeddedS3, prefix: str) -> dict[int, dict[bytes, bytes]]:
    """Return the rows of each shard that the current manifest names, by SQLite alone."""
    observer = s3.observer()

    def body(uri: str) -> bytes:
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        return observer.get_object(Bucket=bucket, Key=key)["Body"].read()

    found: dict[int, dict[bytes, bytes]] = {}
    with closing(sqlite3.connect(":memory:")) as manifest:
        manifest.deserialize(body(json.loads(body(f"{prefix}/_CURRENT"))["manifest_ref"]))
        for db_id, url, count, size, digest in manifest.execute(
            "SELECT db_id, db_url, row_count, db_bytes, sha256 FROM shards"
        ):
            content = body(f"{url}/shard.db")
            assert (len(content), hashlib.sha256(content).hexdigest()) == (size, digest)
            with closing(sqlite3.connect(":memory:")) as shard:
                shard.deserialize(content)
                assert shard.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                found[db_id] = dict(shard.execute("SELECT k, v FROM kv"))
            assert len(found[db_id]) == count
    return found


@pytest.mark.parametrize("num_dbs", [1, 3, 64])
def test_each_row_is_in_its_own_shard(spark: SparkSession, s3: EmbeddedS3, num_dbs: int) -> None:
    """By the digest of its key; nothing is lost, nothing is there twice."""
    frame = spark.range(ROWS).selectExpr("id * 7919 AS id", "concat('value ', id) AS v")
    prefix = f"{PREFIX}-{num_dbs}"
    result = write_sharded(
        frame, WriteConfig(num_dbs=num_dbs, s3_prefix=prefix), key_col="id", value_spec=binary_col("v")
    )

    found = shards_of(s3, prefix)
    assert sum(map(len, found.values())) == result.stats.rows_written == ROWS
    for db_id, rows in found.items():
        for key, value in rows.items():
            number = int.from_bytes(key, "big")
            assert xxhash.xxh3_64_intdigest(number.to_bytes(8, "little", signed=True)) % num_dbs == db_id
            assert value == f"value {number // 7919}".encode()
    with SnapshotReader(prefix) as reader:
        assert reader.multi_get([7919, 0, 1]) == {7919: b"value 1", 0: b"value 0", 1: None}


def test_keys_may_be_texts(spark: SparkSession, s3: EmbeddedS3) -> None:
    """Each shard holds them in the order of their bytes."""
    frame = spark.range(ROWS).selectExpr("concat('schlüssel ', id) AS id", "id AS v")
    config = WriteConfig(num_dbs=4, s3_prefix=f"{PREFIX}-texts", key_encoding=KeyEncoding.UTF8)
    write_sharded(frame.selectExpr("id", "cast(v AS string) AS v"), config, key_col="id", value_spec=binary_col("v"))
    found = shards_of(s3, f"{PREFIX}-texts")
    for db_id, rows in found.items():
        assert list(rows) == sorted(rows)
        assert all(xxhash.xxh3_64_intdigest(key) % 4 == db_id for key in rows)
    assert sum(map(len, found.values())) == ROWS


@pytest.mark.parametrize(
    ("key", "problem"),
    [("id DIV 2", "have the id"), ("id - 1", "is not from 0 to"), ("nullif(id, 7)", "a key is null")],
)
def test_rows_that_cannot_be_keys_fail_the_build(spark: SparkSession, s3: EmbeddedS3, key: str, problem: str) -> None:
    """Two rows of one key, a negative key, no key: `_CURRENT` stays as it was."""
    prefix = f"{PREFIX}-bad"
    config = WriteConfig(num_dbs=2, s3_prefix=prefix)
    good = spark.range(10).selectExpr("id", "'v' AS v")
    before = write_sharded(good, config, key_col="id", value_spec=binary_col("v"))
    with pytest.raises(Exception, match=problem):
        write_sharded(
            spark.range(100).selectExpr(f"{key} AS id", "'v' AS v"), config, key_col="id", value_spec=binary_col("v")
        )
    with SnapshotReader(prefix) as reader:
        assert reader.manifest_ref == before.manifest_ref


def test_the_slower_of_two_builds_is_told_so(
    spark: SparkSession, s3: EmbeddedS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one has published meanwhile; a reader that refreshes goes on with that."""
    config = WriteConfig(num_dbs=2, s3_prefix=f"{PREFIX}-race")
    frame = spark.range(10).selectExpr("id", "'first' AS v")
    write_sharded(frame, config, key_col="id", value_spec=binary_col("v"))
    run = Job.run

    def slower(job: Job, df: DataFrame, rows_read: int | None = None) -> Written:
        written = run(job, df, rows_read)
        monkeypatch.setattr(Job, "run", run)
        write_sharded(frame.selectExpr("id", "'faster' AS v"), config, key_col="id", value_spec=binary_col("v"))
        return written

    monkeypatch.setattr(Job, "run", slower)
    with SnapshotReader(config.s3_prefix) as reader:
        with pytest.raises(PublishConflictError):
            write_sharded(frame.selectExpr("id", "'slower' AS v"), config, key_col="id", value_spec=binary_col("v"))
        assert reader.get(1) == b"first"
        assert reader.refresh()
        assert reader.get(1) == b"faster"
        assert not reader.refresh()


def test_a_build_in_a_turn_is_fenced_by_its_token(spark: SparkSession) -> None:
    """One whose turn was taken away publishes nothing; `_CURRENT` bears the token of the last one that did."""
    backend = MemoryBackend()
    config = WriteConfig(num_dbs=2, s3_prefix=f"{PREFIX}-turn")
    frame = spark.range(10).selectExpr("id", "'v' AS v")
    coordinator = JobCoordinator(Configuration(lock="snapshot", job="builder"), backend)
    with coordinator.turn() as turn:
        write_sharded(frame, config, key_col="id", value_spec=binary_col("v"))
        token = turn.token
    assert Publisher(open_store(config.location)).base().current.fencing_token == token  # type: ignore[union-attr]

    with pytest.raises(TurnLostError), coordinator.turn() as turn:
        stored = backend.read("snapshot")
        assert stored is not None
        backend.write(end(stored.record, End.FORCED, 0), stored)
        with pytest.raises(TurnLostError):
            turn.open_write(OpenWrite("s3://checkpoints", "key", 1))  # it learns of it
        write_sharded(frame, config, key_col="id", value_spec=binary_col("v"))
    assert Publisher(open_store(config.location)).base().current.fencing_token == token  # type: ignore[union-attr]
