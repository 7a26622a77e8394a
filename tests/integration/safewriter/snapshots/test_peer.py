"""The compatibility test: shardyfusion's own reader, parser and command line open SoAL's snapshots, unchanged.

It has no release, so SHARDYFUSION names a checkout: the folders of its source and of its packages, as in PYTHONPATH.
docs/guides/snapshots.md names the commit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.objects.s3 import S3ObjectStore
from safewriter.snapshots import (
    KeyEncoding,
    Source,
    WriteConfig,
    binary_col,
    cel_sharding_by_columns,
    verify,
    write_sharded,
)
from safewriter.snapshots.write.publish import Publisher
from tests.support.observed import LAKE
from tests.support.snapshots import build as made

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from safewriter.snapshots import BuildResult
    from soal.testing.s3.embedded import EmbeddedS3
    from tests.integration.safewriter.snapshots.conftest import Build
    from tests.support.snapshot_prefix import SnapshotPrefix

SOURCE = os.environ.get("SHARDYFUSION")
pytestmark = [
    pytest.mark.skipif(SOURCE is None, reason="SHARDYFUSION names no checkout of elkin/shardyfusion with its packages"),
]

ROWS = 20_000


def environment(s3: EmbeddedS3) -> dict[str, str]:
    own = {
        "AWS_ENDPOINT_URL": s3.endpoint,
        "S3_ENDPOINT_URL": s3.endpoint,
        "AWS_ALLOW_HTTP": "true",
    }
    return {**os.environ, **s3.environment(), **own, "PYTHONPATH": SOURCE or ""}


def peer_told(s3: EmbeddedS3, order: dict[str, Any]) -> dict[str, Any]:
    ended = subprocess.run(
        [sys.executable, Path(__file__).with_name("peer_reader.py")],
        input=json.dumps(order),
        env=environment(s3),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    told: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return told


class Shardy:
    """Its command line on a prefix."""

    def __init__(self, s3: EmbeddedS3, prefix: SnapshotPrefix, folder: Path) -> None:
        self._environment, self._config = environment(s3), folder / "reader.toml"
        self._config.write_text(f'[reader]\ncurrent_url = "{prefix.uri}/_CURRENT"\nreader_backend = "sqlite"\n')

    def __call__(self, *arguments: str) -> str:
        script = "from shardyfusion.cli.app import main; main()"
        command = [sys.executable, "-c", script, "--config", str(self._config), "--output-format", "json", *arguments]
        ended = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout


def read(
    s3: EmbeddedS3,
    prefix: SnapshotPrefix,
    result: BuildResult,
    keys: list[Any],
    context: dict[str, Any] | None = None,
) -> dict[str, Any]:
    order = {
        "prefix": prefix.uri,
        "keys": keys,
        "context": context,
        "run_record_ref": result.run_record_ref,
        "endpoint": s3.endpoint,
    }
    found = peer_told(s3, order)
    assert (found["run_id"], found["rows"], found["status"]) == (result.run_id, ROWS, "succeeded")
    return found


@pytest.mark.spark
def test_its_reader_finds_each_integer(
    spark: SparkSession, s3: EmbeddedS3, prefix: SnapshotPrefix, build: Build
) -> None:
    """In eight shards, by hash."""
    result = build(spark.range(ROWS).selectExpr("id", "concat('value ', id) AS v"), num_dbs=8)
    found = read(s3, prefix, result, [*range(ROWS + 1)])
    assert found["values"] == {**{str(id_): f"value {id_}" for id_ in range(ROWS)}, str(ROWS): None}


@pytest.mark.spark
def test_its_reader_finds_each_text(spark: SparkSession, s3: EmbeddedS3, prefix: SnapshotPrefix, build: Build) -> None:
    """With letters beyond ASCII."""
    frame = spark.range(ROWS).selectExpr("concat('schlüssel ', id) AS id", "concat('value ', id) AS v")
    result = build(frame, num_dbs=5, key_encoding=KeyEncoding.UTF8)
    found = read(s3, prefix, result, [f"schlüssel {id_}" for id_ in range(ROWS)])
    assert found["values"] == {f"schlüssel {id_}": f"value {id_}" for id_ in range(ROWS)}


@pytest.mark.spark
def test_its_reader_routes_by_our_expression(spark: SparkSession, s3: EmbeddedS3, prefix: SnapshotPrefix) -> None:
    """A shard for each value of a column, found in the data."""
    frame = spark.range(ROWS).selectExpr("id", "concat('value ', id) AS v", "concat('region ', id % 3) AS region")
    config = WriteConfig(s3_prefix=prefix.uri, sharding=cel_sharding_by_columns("region"))
    result = write_sharded(frame, config, key_col="id", value_spec=binary_col("v"))
    keys = list(range(1, ROWS, 3))
    found = read(s3, prefix, result, keys, {"region": "region 1"})
    assert found["num_dbs"] == 3
    assert found["values"] == {str(id_): f"value {id_}" for id_ in keys}


@pytest.mark.spark
def test_an_incremental_build_is_read_by_it(
    spark: SparkSession, s3: EmbeddedS3, prefix: SnapshotPrefix, build: Build
) -> None:
    """The shards of two builds."""
    frame = spark.range(ROWS).selectExpr("id", "concat('value ', id) AS v")
    build(frame, num_dbs=8, incremental=True)
    other = frame.selectExpr("id", "if(id = 7, 'new', v) AS v")
    result = build(other, num_dbs=8, incremental=True)
    assert result.taken_over == 7
    found = read(s3, prefix, result, [*range(ROWS + 1)])
    expected = {str(id_): f"value {id_}" for id_ in range(ROWS)} | {"7": "new", str(ROWS): None}
    assert found["values"] == expected


@pytest.mark.parametrize("num_dbs", [1, 64], ids=["a single one", "some without rows"])
@pytest.mark.parametrize(
    ("encoding", "keys"),
    [
        (KeyEncoding.U64BE, [0, 1, 2**40, 2**63 - 1]),
        (KeyEncoding.U32BE, [0, 1, 2**32 - 1]),
        (KeyEncoding.UTF8, ["a", "schlüssel"]),
    ],
    ids=["u64be", "u32be", "utf8"],
)
def test_its_reader_finds_shards_taken_over(
    s3: EmbeddedS3, prefix: SnapshotPrefix, tmp_path: Path, encoding: KeyEncoding, keys: list[Any], num_dbs: int
) -> None:
    """Each shard but the last is of an earlier build; its command line and our verification agree."""
    store, created = S3ObjectStore(prefix.client, LAKE, prefix.name), datetime(2026, 11, 1, tzinfo=UTC)
    rows = {key: f"value {key}".encode() for key in keys}
    first, second = (
        made(store, rows, run, created=created, num_dbs=num_dbs, encoding=encoding) for run in ("first", "second")
    )
    shards = [replace(shard, writer_info={"rows_digest": "0" * 64}) for shard in first.shards[:-1]]
    manifest = replace(second, s3_prefix=prefix.uri, shards=(*shards, second.shards[-1]))
    publisher = Publisher(store, now=lambda: created)
    publisher.publish(manifest, publisher.base())
    assert verify(Source(prefix.uri)).is_sound
    order = {"prefix": prefix.uri, "keys": keys, "context": None, "endpoint": s3.endpoint}
    told = peer_told(s3, {**order, "run_record_ref": None})
    assert told["values"] == {str(key): f"value {key}" for key in keys}
    assert (told["run_id"], told["num_dbs"], told["rows"]) == ("second", num_dbs, len(keys))
    shardy = Shardy(s3, prefix, tmp_path)
    assert json.loads(shardy("get", str(keys[0])))["found"] is True
    assert "second" in shardy("info")


@pytest.mark.spark
def test_its_command_line_finds_nothing_to_clean_up(
    spark: SparkSession, s3: EmbeddedS3, prefix: SnapshotPrefix, build: Build, tmp_path: Path
) -> None:
    """It also lists the history."""
    results = [build(spark.range(ROWS).selectExpr("id", f"'{name}' AS v")) for name in ("first", "second")]
    shardy = Shardy(s3, prefix, tmp_path)
    assert results[1].run_id in shardy("info")
    history = shardy("history")
    assert history.index(results[1].run_id) < history.index(results[0].run_id)
    assert json.loads(shardy("get", "7"))["found"] is True
    assert json.loads(shardy("cleanup", "--dry-run"))["stale_attempts"] == []
