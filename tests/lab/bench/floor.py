"""Measure the sample append without a function: stock spark-submit, and, as the floor, without a JVM.

Each way is a process of its own, timed from start to end, on a new table: spark-submit as pip installs it with the
unguarded script; deltalake and pyiceberg, which read the same CSV file and append it. None of them is guarded or
supervised. `python -m tests.lab.bench.floor deltalake TABLE` is one of these processes.
"""

from __future__ import annotations

import io
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scripts.local.sample import JOBS, put_sample
from scripts.provision.place import ROOT
from soal.local.names import BUCKETS, DATA, LAKE, SOURCE_KEY
from soal.testing.s3.embedded import EmbeddedS3
from tests.lab.bench.peer import SETTINGS
from tests.support.spark_session import stock_class_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["FloorRow", "measure"]

_UNGUARDED: Final = JOBS / "accommodations_delta_unguarded.py"
_TIMEOUT_S: Final = 300
_SAID_MAX: Final = 4000


@dataclass(frozen=True, slots=True)
class FloorRow:
    """Milliseconds that a process takes to append the sample file, over `rounds` rounds of all ways in turn."""

    way: str
    rounds: int
    ms: float
    ms_min: float
    ms_max: float


def measure(rounds: int = 5, progress: Callable[[int], None] = lambda _: None) -> tuple[FloorRow, ...]:
    """Run each way `rounds` times; `progress` gets the number of rounds done. Raises `RuntimeError` if one fails."""
    taken: dict[str, list[float]] = {"spark-submit": [], "deltalake": [], "pyiceberg": []}
    with EmbeddedS3(buckets=BUCKETS) as s3, tempfile.TemporaryDirectory(prefix="soal-bench-") as folder:
        put_sample(s3.observer())
        variables = {**os.environ, **s3.environment(), "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
        for turn in range(rounds):
            for way, times in taken.items():
                command = _command(way, f"{LAKE}/{uuid.uuid4().hex}", s3.endpoint)
                times.append(_timed(command, {**variables, "TMPDIR": folder}, folder))
            progress(turn + 1)
    return tuple(FloorRow(way, rounds, statistics.median(ms), min(ms), max(ms)) for way, ms in taken.items())


def _command(way: str, table: str, endpoint: str) -> list[str]:
    if way != "spark-submit":
        return [sys.executable, "-P", "-m", "tests.lab.bench.floor", way, f"s3://{table}"]
    settings = {**SETTINGS, "spark.hadoop.fs.s3a.endpoint": endpoint}
    return [
        str(Path(sys.executable).with_name("spark-submit")),
        *("--driver-class-path", stock_class_path()),
        *(part for key, value in settings.items() for part in ("--conf", f"{key}={value}")),
        str(_UNGUARDED),
        *("--source", f"s3a://{DATA}/{SOURCE_KEY}", "--table", f"s3a://{table}"),
    ]


def _timed(command: list[str], variables: Mapping[str, str], folder: str) -> float:
    began = time.monotonic_ns()
    done = subprocess.run(
        command, env=variables, cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    taken_ms = (time.monotonic_ns() - began) / 1e6
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} has failed: {(done.stdout + done.stderr)[-_SAID_MAX:]}")
    return taken_ms


def _rows() -> Any:
    """Read the sample file as Spark's job does: names from the first line, types inferred."""
    import boto3
    from botocore.config import Config
    from pyarrow import csv

    client = boto3.client("s3", config=Config(s3={"addressing_style": "path"}))
    body = client.get_object(Bucket=DATA, Key=SOURCE_KEY)["Body"].read()
    return csv.read_csv(
        io.BytesIO(body), parse_options=csv.ParseOptions(delimiter=";", newlines_in_values=True, double_quote=True)
    )


def _append_delta(table: str) -> None:
    from deltalake import write_deltalake

    options = {"AWS_ALLOW_HTTP": "true", "aws_conditional_put": "etag"}
    write_deltalake(table, _rows(), mode="append", storage_options=options)


def _append_iceberg(table: str) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    options = {"s3.endpoint": os.environ["AWS_ENDPOINT_URL_S3"], "s3.region": "us-east-1"}
    name = f"db.t{uuid.uuid4().hex}"
    catalog = SqlCatalog("floor", uri=f"sqlite:///{os.environ['TMPDIR']}/floor.db", warehouse=table, **options)
    catalog.create_namespace_if_not_exists("db")
    rows = _rows()
    catalog.create_table(name, rows.schema).append(rows)


if __name__ == "__main__":
    {"deltalake": _append_delta, "pyiceberg": _append_iceberg}[sys.argv[1]](sys.argv[2])
