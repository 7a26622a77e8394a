"""The driver of builds, with one warm session on two cores: `python -m tests.lab.bench.snapshot_builder FOLDER`."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from safewriter.snapshots import OutputOptions, WriteConfig, binary_col, write_sharded
from tests.lab.processes import answer, asked
from tests.support.spark_session import build_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__: list[str] = []

_SETTINGS: Final = {
    "spark.driver.memory": "2g",
    # As the handler sets it for jobs of minutes: with the optimising compiler.
    "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={tempfile.gettempdir()} -XX:+UseSerialGC -XX:NewSize=96m",
}


def main(folder: str) -> None:
    """Build a snapshot of the files `source` for each line on stdin."""
    peer = os.environ.get("SHARDYFUSION")
    if peer is not None:  # also for the tasks; behind our own packages, which both use
        sys.path += peer.split(":")
        os.environ["PYTHONPATH"] = f"{os.environ['PYTHONPATH']}:{peer}"
        os.environ["AWS_ENDPOINT_URL"] = os.environ["AWS_ENDPOINT_URL_S3"]
        os.environ["AWS_ALLOW_HTTP"] = "true"
    spark = build_session(os.environ["AWS_ENDPOINT_URL_S3"], "local[2]", _SETTINGS)
    answer()
    for question in asked():
        began = time.monotonic()
        build = _by_peer if question.get("how") == "peer" else _ours
        found = build(spark.read.parquet(question["source"]), question, Path(folder, "tasks"))
        answer(wall_s=time.monotonic() - began, **found)


def _ours(frame: DataFrame, question: dict[str, Any], folder: Path) -> dict[str, int]:
    config = WriteConfig(
        num_dbs=question["shards"],
        s3_prefix=question["prefix"],
        output=OutputOptions(local_root=folder),
        incremental=question.get("how") == "incremental",
    )
    result = write_sharded(frame, config, key_col="id", value_spec=binary_col("v"))
    return {"rows": result.stats.rows_written, "taken_over": result.taken_over}


def _by_peer(frame: DataFrame, question: dict[str, Any], folder: Path) -> dict[str, int]:
    from shardyfusion.config import ColumnWriteInput, HashShardedWriteConfig, WriterOutputConfig
    from shardyfusion.serde import ValueSpec
    from shardyfusion.sqlite_adapter import SqliteFactory
    from shardyfusion.writer.spark import write_hash_sharded

    config = HashShardedWriteConfig(
        num_dbs=question["shards"],
        s3_prefix=question["prefix"],
        output=WriterOutputConfig(local_root=str(folder)),
        adapter_factory=SqliteFactory(),
    )
    given = ColumnWriteInput(key_col="id", value_spec=ValueSpec.binary_col("v"))
    result = write_hash_sharded(frame, config, given)
    return {"rows": result.stats.rows_written, "taken_over": 0}


if __name__ == "__main__":
    main(sys.argv[1])
