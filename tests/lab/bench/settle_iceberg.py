"""Measure a verdict on a dead Iceberg write without Java: a settler reads the table and fences the attempt off.

In turn with it, the catalog's own time for a read and a commit; and the verdict's time in a process of its own on
tables of many snapshots. One SQL catalog and one embedded S3, both in this process.
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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from unittest.mock import patch

from safewriter.block.claim import Claimer
from safewriter.deadline import epoch_ms
from safewriter.identity import Attempt, Run, Write
from safewriter.objects.location import Location
from safewriter.objects.s3 import open_store, table_store
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import CommitPoint, Status
from safewriter.settle.recovery import Cause, Recovery
from safewriter.tables.iceberg.name import TableName
from safewriter.tables.session import TableState
from soal.testing.s3.embedded import EmbeddedS3
from tests.lab.bench.history import lengthen
from tests.lab.bench.settler import Measured
from tests.support.iceberg_writer import IDS, add, open_catalog

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyiceberg.table import Table

__all__ = ["IcebergSettleRow", "measure_iceberg"]

_LAKE: Final = "bench-lake"
_CHECKPOINTS: Final = "bench-checkpoints"
_WARM_UP: Final = 2


@dataclass(frozen=True, slots=True)
class IcebergSettleRow:
    """Medians in milliseconds over `rounds` dead writes that are fenced off, on a table of `snapshots` snapshots.

    `beyond_ms` is the verdict's time without the catalog's own: two reads (`look_ms`) and one commit (`commit_ms`). For
    a table of many snapshots: `verdict_ms` with the loading of the libraries, the peak memory and the requests of a
    process that does nothing else.
    """

    snapshots: int
    rounds: int
    verdict_ms: float
    verdict_ms_max: float
    look_ms: float | None = None
    commit_ms: float | None = None
    beyond_ms: float | None = None
    peak_mb: float | None = None
    metadata_reads: int | None = None
    listings: int | None = None


def measure_iceberg(
    rounds: int = 20, snapshots: Sequence[int] = (1_000, 10_000), progress: Callable[[int], None] = lambda _: None
) -> tuple[IcebergSettleRow, ...]:
    """Settle `rounds` dead writes, and one on each table of `snapshots` snapshots; `progress` gets the number done."""
    with (
        EmbeddedS3(buckets=(_LAKE, _CHECKPOINTS)) as s3,
        tempfile.TemporaryDirectory(prefix="soal-bench-") as folder,
        patch.dict(os.environ, s3.environment()),
    ):
        bench = _Bench(s3, folder)
        few = bench.measure(bench.table("few"), rounds, progress)
        return (few, *(bench.measure_alone(bench.table(f"of_{count}"), count) for count in snapshots))


class _Bench:
    def __init__(self, s3: EmbeddedS3, folder: str) -> None:
        self.s3 = s3
        self.where = {"type": "jdbc", "uri": f"jdbc:sqlite:{folder}/bench.db", "warehouse": f"s3://{_LAKE}/w"}
        os.environ["PYICEBERG_CATALOG__BENCH__URI"] = f"sqlite:///{folder}/bench.db"  # by which settlers reach it
        self.catalog = open_catalog("bench", self.where)
        self.checkpoints = Checkpoints(open_store(Location(_CHECKPOINTS)))

    def table(self, name: str) -> TableName:
        """Create a table with one snapshot."""
        found = TableName.parse(f"bench.db.{name}")
        table = self.catalog.create_table(found.identifier, IDS)
        add(table, "main", f"{table.metadata.location}/data/first.parquet")
        return found

    def load(self, name: TableName) -> Table:
        return self.catalog.load_table(name.identifier)

    def measure(self, name: TableName, rounds: int, progress: Callable[[int], None]) -> IcebergSettleRow:
        verdicts, looks, commits = [], [], []
        for turn in range(-_WARM_UP, rounds):
            look_ms, commit_ms = self.catalog_alone(name)
            verdict_ms = self.verdict(name)
            if turn >= 0:
                verdicts.append(verdict_ms)
                looks.append(look_ms)
                commits.append(commit_ms)
                progress(turn + 1)
        middle, look_ms, commit_ms = (statistics.median(taken) for taken in (verdicts, looks, commits))
        return IcebergSettleRow(
            snapshots=1,
            rounds=rounds,
            verdict_ms=middle,
            verdict_ms_max=max(verdicts),
            look_ms=look_ms,
            commit_ms=commit_ms,
            beyond_ms=middle - 2 * look_ms - commit_ms,
        )

    def catalog_alone(self, name: TableName) -> tuple[float, float]:
        """Return the times of a read of the table and of a commit that changes a property."""
        began = time.monotonic_ns()
        table = self.load(name)
        looked = time.monotonic_ns()
        with table.transaction() as change:
            change.set_properties({"turn": uuid.uuid4().hex})
        return (looked - began) / 1e6, (time.monotonic_ns() - looked) / 1e6

    def verdict(self, name: TableName) -> float:
        """Claim a write, as an attempt that then dies, settle it, and return the milliseconds."""
        key = self._die(name)
        began = time.monotonic_ns()
        settled = self._recovery().settle(key, Cause.KILLED)
        taken_ms = (time.monotonic_ns() - began) / 1e6
        if settled is None or settled.document.status is not Status.ROLLED_BACK:
            raise RuntimeError(f"the write was not fenced off: {settled}")
        return taken_ms

    def measure_alone(self, name: TableName, snapshots: int) -> IcebergSettleRow:
        """Settle a dead write to a table with `snapshots` snapshots, in a process of its own."""
        lengthen(self.load(name), snapshots)
        key = self._die(name)
        length = len(self.s3.trace())
        line = [sys.executable, "-P", "-m", "tests.lab.bench.settler", _CHECKPOINTS, key]
        done = subprocess.run(line, env=_with_path(), capture_output=True, text=True, check=True)
        settled = Measured(**json.loads(done.stdout))
        if settled.status != Status.ROLLED_BACK:
            raise RuntimeError(f"the write was not fenced off: {settled}")
        asked = [one.operation for one in self.s3.trace()[length:] if one.bucket == _LAKE]
        return IcebergSettleRow(
            snapshots=snapshots,
            rounds=1,
            verdict_ms=settled.verdict_ms,
            verdict_ms_max=settled.verdict_ms,
            peak_mb=settled.peak_mb,
            metadata_reads=asked.count("GetObject"),
            listings=sum(one.startswith("List") for one in asked),
        )

    def _die(self, name: TableName) -> str:
        write = Write(Run(uuid.uuid4().hex, "bench", "bench", "bench"), name, "iceberg", None)
        claimer = Claimer(self.checkpoints, self._recovery(), write, Attempt.draw(), CommitPoint.WRITE, None)
        claimer.announce()
        metadata = self.load(name).metadata
        head = metadata.refs["main"].snapshot_id
        claimer.claim(TableState(head, str(metadata.table_uuid), (), {}, catalog=self.where))
        return write.key

    def _recovery(self) -> Recovery:
        return Recovery(self.checkpoints, table_store, clock=epoch_ms)


def _with_path() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
