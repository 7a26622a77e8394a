"""Lambda's fan-out: several processes append to one Iceberg table at once, guarded and plain in turn.

pyiceberg counts the appends that are in the table.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Self, cast
from unittest.mock import patch

from scripts.emulator.iceberg_writer import IDS, open_catalog
from scripts.emulator.rest_catalog import RestCatalog
from scripts.emulator.s3 import EmbeddedS3
from scripts.emulator.spark import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import IO

    from pyiceberg.catalog import Catalog

__all__ = ["FanoutCost", "Writers", "measure"]

_LAKE: Final = "bench-lake"
_CHECKPOINTS: Final = "bench-checkpoints"
_WAREHOUSE: Final = f"s3a://{_LAKE}/w"
_CATALOG: Final = "bench"
_SAID_MAX: Final = 4000


@dataclass(frozen=True, slots=True)
class FanoutCost:
    """Medians in seconds of a round, in which each of `writers` processes appends one row, over `rounds` rounds to each
    of two tables. `…_rows` is how many rows the table holds at the end, of `writers * rounds`.
    """

    catalog: str
    writers: int
    rounds: int
    plain_s: float
    guarded_s: float
    ratio: float
    plain_rows: int
    guarded_rows: int


def measure(
    catalog: Literal["sqlite", "rest"] = "sqlite",
    writers: int = 8,
    rounds: int = 5,
    progress: Callable[[int], None] = lambda _: None,
) -> FanoutCost:
    """Run `rounds` pairs of a plain and a guarded round; `progress` gets the number of finished ones."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soal-bench-")))
        s3 = stack.enter_context(EmbeddedS3(buckets=(_LAKE, _CHECKPOINTS), unlistable=(_CHECKPOINTS,)))
        stack.enter_context(patch.dict(os.environ, s3.environment(), SW_CHECKPOINT_BUCKET=_CHECKPOINTS))
        where = {"type": "jdbc", "uri": f"jdbc:sqlite:{folder}/bench.db", "jdbc.schema-version": "V1"}
        if catalog == "rest":
            where = {"type": "rest", "uri": stack.enter_context(RestCatalog(s3, folder, _WAREHOUSE)).uri}
        where["warehouse"] = _WAREHOUSE
        tables = _with_tables(where)
        processes = stack.enter_context(Writers(writers, _settings(where), folder))
        taken: dict[str, list[float]] = {"plain": [], "guarded": []}
        for turn in range(rounds):
            for way, times in taken.items():
                began = time.monotonic()
                processes.append(way, f"{_CATALOG}.db.{way}")
                times.append(time.monotonic() - began)
            progress(turn + 1)
        return FanoutCost(
            catalog=catalog,
            writers=writers,
            rounds=rounds,
            plain_s=statistics.median(taken["plain"]),
            guarded_s=statistics.median(taken["guarded"]),
            ratio=statistics.median(two / one for one, two in zip(taken["plain"], taken["guarded"], strict=True)),
            plain_rows=_rows(tables, "plain"),
            guarded_rows=_rows(tables, "guarded"),
        )


class Writers(AbstractContextManager["Writers"]):
    """Processes with a Spark each, ready to append. Their logs are in files in `folder`.

    They end with the block, or with this process, even if it is killed.
    """

    def __init__(self, count: int, settings: Mapping[str, str], folder: Path) -> None:
        self._count = count
        self._settings = json.dumps(dict(settings))
        self._folder = folder
        self._processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        for number in range(self._count):
            line = [sys.executable, "-P", "-m", "scripts.bench.appender", str(number), "iceberg", self._settings]
            own = {"PYTHONPATH": str(ROOT), "SOAL_RUN_KEY": uuid.uuid4().hex}
            with self._log(number).open("wb") as log:
                self._processes.append(
                    subprocess.Popen(
                        line,
                        env={**os.environ, **own},
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=log,
                        text=True,
                    )
                )
        try:
            self._answers("ready")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            with process:
                cast("IO[str]", process.stdin).close()  # it ends at the end of its input
        self._processes.clear()

    def append(self, way: str, table: str) -> list[str]:
        """Let each append one row at once, `plain` or `guarded`; return the errors."""
        for process in self._processes:
            print(way, table, file=process.stdin, flush=True)
        return [answer for answer in self._answers("done", "failed") if answer.startswith("failed")]

    def _answers(self, *beginnings: str) -> list[str]:
        return [self._answer(number, beginnings) for number in range(self._count)]

    def _answer(self, number: int, beginnings: tuple[str, ...]) -> str:
        for line in cast("IO[str]", self._processes[number].stdout):
            if line.startswith(beginnings):
                return line.rstrip()
        raise RuntimeError(f"writer {number} has ended: {self._log(number).read_text()[-_SAID_MAX:]}")

    def _log(self, number: int) -> Path:
        return self._folder / f"writer-{number}.log"


def _settings(where: Mapping[str, str]) -> dict[str, str]:
    """Return a session's settings for the catalog."""
    own = {**where, "io-impl": "org.apache.iceberg.hadoop.HadoopFileIO"}
    prefix = f"spark.sql.catalog.{_CATALOG}"
    return {prefix: "org.apache.iceberg.spark.SparkCatalog", **{f"{prefix}.{key}": own[key] for key in own}}


def _with_tables(where: Mapping[str, str]) -> Catalog:
    catalog = open_catalog(_CATALOG, where)
    for way in ("plain", "guarded"):
        catalog.create_table(f"db.{way}", IDS)
    return catalog


def _rows(catalog: Catalog, name: str) -> int:
    snapshot = catalog.load_table(f"db.{name}").current_snapshot()
    if snapshot is None or snapshot.summary is None:
        return 0
    return int(snapshot.summary.get("total-records") or 0)
