"""The compatibility test: shardyfusion's own reader, parser and command line open SoAL's snapshots, unchanged.

It has no release, so SHARDYFUSION names a checkout: the folders of its source and of its packages, as in PYTHONPATH.
docs/guides/snapshots.md names the commit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.snapshots import (
    KeyEncoding,
    SlateDbFactory,
    WriteConfig,
    binary_col,
    cel_sharding_by_columns,
    write_sharded,
)
from tests.support.slatedb import needs_slatedb

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from safewriter.snapshots import BuildResult
    from soal.testing.s3.embedded import EmbeddedS3
    from tests.integration.safewriter.snapshots.conftest import Build
    from tests.support.snapshot_prefix import SnapshotPrefix

SOURCE = os.environ.get("SHARDYFUSION")
pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(SOURCE is None, reason="SHARDYFUSION names no checkout of elkin/shardyfusion with its packages"),
]

ROWS = 20_000


def environment(s3: EmbeddedS3) -> dict[str, str]:
    own = {
        "AWS_ENDPOINT_URL": s3.endpoint,
        "SLATEDB_S3_ENDPOINT_URL": s3.endpoint,
        "S3_ENDPOINT_URL": s3.endpoint,
        "AWS_ALLOW_HTTP": "true",
    }
    return {**os.environ, **s3.environment(), **own, "PYTHONPATH": SOURCE or ""}


def read(
    s3: EmbeddedS3,
    prefix: SnapshotPrefix,
    result: BuildResult,
    keys: list[Any],
    context: dict[str, Any] | None = None,
    *,
    is_sqlite: bool = True,
) -> dict[str, Any]:
    order = {
        "prefix": prefix.uri,
        "keys": keys,
        "context": context,
        "run_record_ref": result.run_record_ref,
        "endpoint": s3.endpoint,
        "is_sqlite": is_sqlite,
    }
    ended = subprocess.run(
        [sys.executable, Path(__file__).with_name("peer_reader.py")],
        input=json.dumps(order),
        env=environment(s3),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    assert (found["run_id"], found["rows"], found["status"]) == (result.run_id, ROWS, "succeeded")
    return found


def test_its_reader_finds_each_integer(
    spark: SparkSession, s3: EmbeddedS3, prefix: SnapshotPrefix, build: Build
) -> None:
    """In eight shards, by hash."""
    result = build(spark.range(ROWS).selectExpr("id", "concat('value ', id) AS v"), num_dbs=8)
    found = read(s3, prefix, result, [*range(ROWS + 1)])
    assert found["values"] == {**{str(id_): f"value {id_}" for id_ in range(ROWS)}, str(ROWS): None}


@needs_slatedb
def test_its_reader_finds_each_integer_in_slatedb(
    spark: SparkSession, s3: EmbeddedS3, prefix: SnapshotPrefix, build: Build
) -> None:
    """Its default."""
    frame = spark.range(ROWS).selectExpr("id", "concat('value ', id) AS v")
    result = build(frame, num_dbs=3, adapter_factory=SlateDbFactory())
    found = read(s3, prefix, result, [*range(ROWS + 1)], is_sqlite=False)
    assert found["values"] == {**{str(id_): f"value {id_}" for id_ in range(ROWS)}, str(ROWS): None}


def test_its_reader_finds_each_text(spark: SparkSession, s3: EmbeddedS3, prefix: SnapshotPrefix, build: Build) -> None:
    """With letters beyond ASCII."""
    frame = spark.range(ROWS).selectExpr("concat('schlüssel ', id) AS id", "concat('value ', id) AS v")
    result = build(frame, num_dbs=5, key_encoding=KeyEncoding.UTF8)
    found = read(s3, prefix, result, [f"schlüssel {id_}" for id_ in range(ROWS)])
    assert found["values"] == {f"schlüssel {id_}": f"value {id_}" for id_ in range(ROWS)}


def test_its_reader_routes_by_our_expression(spark: SparkSession, s3: EmbeddedS3, prefix: SnapshotPrefix) -> None:
    """A shard for each value of a column, found in the data."""
    frame = spark.range(ROWS).selectExpr("id", "concat('value ', id) AS v", "concat('region ', id % 3) AS region")
    config = WriteConfig(s3_prefix=prefix.uri, sharding=cel_sharding_by_columns("region"))
    result = write_sharded(frame, config, key_col="id", value_spec=binary_col("v"))
    keys = list(range(1, ROWS, 3))
    found = read(s3, prefix, result, keys, {"region": "region 1"})
    assert found["num_dbs"] == 3
    assert found["values"] == {str(id_): f"value {id_}" for id_ in keys}


def test_its_command_line_finds_nothing_to_clean_up(
    spark: SparkSession, s3: EmbeddedS3, prefix: SnapshotPrefix, build: Build, tmp_path: Path
) -> None:
    """It also lists the history."""
    results = [build(spark.range(ROWS).selectExpr("id", f"'{name}' AS v")) for name in ("first", "second")]
    config = tmp_path / "reader.toml"
    config.write_text(f'[reader]\ncurrent_url = "{prefix.uri}/_CURRENT"\nreader_backend = "sqlite"\n')

    def shardy(*arguments: str) -> str:
        command = [
            sys.executable,
            "-c",
            "from shardyfusion.cli.app import main; main()",
            "--config",
            str(config),
            "--output-format",
            "json",
        ]
        ended = subprocess.run([*command, *arguments], env=environment(s3), capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    assert results[1].run_id in shardy("info")
    history = shardy("history")
    assert history.index(results[1].run_id) < history.index(results[0].run_id)
    assert json.loads(shardy("get", "7"))["found"] is True
    assert json.loads(shardy("cleanup", "--dry-run"))["stale_attempts"] == []
