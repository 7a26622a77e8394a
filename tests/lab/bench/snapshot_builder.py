"""The driver of builds, with one warm session on two cores: `python -m tests.lab.bench.snapshot_builder FOLDER`."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from safewriter.snapshots import OutputOptions, WriteConfig, binary_col, write_sharded
from tests.lab.processes import answer, asked
from tests.support.spark_session import build_session

__all__: list[str] = []

_SETTINGS: Final = {
    "spark.driver.memory": "2g",
    # As the handler sets it for jobs of minutes: with the optimising compiler.
    "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={tempfile.gettempdir()} -XX:+UseSerialGC -XX:NewSize=96m",
}


def main(folder: str) -> None:
    """Build a snapshot of the files `source` for each line on stdin."""
    spark = build_session(os.environ["AWS_ENDPOINT_URL_S3"], "local[2]", _SETTINGS)
    output = OutputOptions(local_root=Path(folder, "tasks"))
    answer()
    for question in asked():
        config = WriteConfig(num_dbs=question["shards"], s3_prefix=question["prefix"], output=output)
        began = time.monotonic()
        frame = spark.read.parquet(question["source"])
        result = write_sharded(frame, config, key_col="id", value_spec=binary_col("v"))
        answer(wall_s=time.monotonic() - began, rows=result.stats.rows_written)


if __name__ == "__main__":
    main(sys.argv[1])
