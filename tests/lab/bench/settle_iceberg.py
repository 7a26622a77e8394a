"""Measure a verdict on a dead Iceberg write without Java: a settler reads the table and fences the attempt off, and
deletes the file that the attempt has left.

In turn with it, the catalog's own time for a read and a commit; and the verdict's time in a process of its own. One SQL
catalog, and SeaweedFS.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from safewriter.block.claim import Claimer
from safewriter.deadline import epoch_ms
from safewriter.identity import Attempt, Run, Write
from safewriter.objects.location import Location
from safewriter.objects.s3 import open_store, table_store
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import CommitPoint, Status
from safewriter.settle.recovery import Cause, Evidence, Recovery
from safewriter.tables.iceberg.metadata import data_folder
from safewriter.tables.iceberg.name import TableName
from safewriter.tables.iceberg.table import name_of
from safewriter.tables.session import TableState
from tests.lab.bench.history import lengthen
from tests.lab.bench.requests import Noted, verdict_ns
from tests.lab.bench.settle_server import CHECKPOINTS, LAKE, served
from tests.lab.bench.settler import alone_in_row, settled_alone
from tests.support.iceberg_writer import IDS, add, open_catalog

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyiceberg.table import Table

    from tests.lab.bench.settler import Measured

__all__ = ["IcebergSettleRow", "measure_iceberg"]

_WARM_UP: Final = 2


@dataclass(frozen=True, slots=True)
class IcebergSettleRow:
    """Medians in milliseconds over `rounds` dead writes that are fenced off, on a table of `snapshots` snapshots, and
    of a third as many in processes of their own.

    `verdict_ms`: until S3 has stored the verdict. `done_ms`: until the attempt's files and markers are deleted, too;
    `done_cpu_ms`: the settler's CPU time, user and system. `done_ratio`: `done_ms` by that on the smallest table.
    `look_ms`, `commit_ms`: a read and a commit of pyiceberg on the smallest table, in turn with the verdicts.
    `fresh_ms`, `fresh_cpu_ms`: `done` since the start of a process that does nothing else, whose memory is `peak_mb`
    at most; `ready_ms` and `ready_cpu_ms` of them until Python, the libraries that every settler needs and a client of
    S3 are there. The rest of these is the catalog's library and the table. `requests`, `listings`,
    `received_bytes`: those of the last of these processes.
    """

    snapshots: int
    rounds: int
    verdict_ms: float
    verdict_ms_max: float
    done_ms: float
    done_cpu_ms: float
    fresh_ms: float
    fresh_cpu_ms: float
    ready_ms: float
    ready_cpu_ms: float
    peak_mb: float
    requests: int
    listings: int
    received_bytes: int
    look_ms: float | None = None
    commit_ms: float | None = None
    done_ratio: float = 1.0


def measure_iceberg(
    rounds: int = 20, snapshots: Sequence[int] = (1, 1_000, 10_000), progress: Callable[[int], None] = lambda _: None
) -> tuple[IcebergSettleRow, ...]:
    """Settle `rounds` dead writes on each table of `snapshots` snapshots; `progress` gets the number of tables."""
    rows: list[IcebergSettleRow] = []
    with served(), tempfile.TemporaryDirectory(prefix="soal-bench-") as folder:
        bench = _Bench(folder)
        for count in snapshots:
            row = bench.row(count, rounds)
            rows.append(replace(row, done_ratio=row.done_ms / (rows[0] if rows else row).done_ms))
            progress(len(rows))
    return tuple(rows)


class _Bench:
    def __init__(self, folder: str) -> None:
        self.where = {"type": "jdbc", "uri": f"jdbc:sqlite:{folder}/bench.db", "warehouse": f"s3://{LAKE}/w"}
        prefix = "spark.sql.catalog.bench"
        settings = {f"{prefix}.{name}": value for name, value in self.where.items()}
        self.settings = {prefix: "org.apache.iceberg.spark.SparkCatalog", **settings}
        self.catalog = open_catalog("bench", self.where)
        self.checkpoints = Checkpoints(open_store(Location(CHECKPOINTS)))

    def table(self, snapshots: int) -> TableName:
        """Create a table with so many snapshots."""
        found = TableName.parse(f"bench.db.of_{snapshots}")
        table = self.catalog.create_table(found.identifier, IDS)
        add(table, "main", f"{table.metadata.location}/data/first.parquet")
        if snapshots > 1:
            lengthen(self.load(found), snapshots)
        # A settler reads the manifests of snapshots that S3 received in the second of the dead write's file.
        time.sleep(1.01 - time.time() % 1)
        return found

    def load(self, name: TableName) -> Table:
        return self.catalog.load_table(name.identifier)

    def row(self, snapshots: int, rounds: int) -> IcebergSettleRow:
        name = self.table(snapshots)
        verdicts, done, cpu, looks, commits = [], [], [], [], []
        noted = Noted()
        for turn in range(-_WARM_UP, rounds):
            catalog_alone = self.catalog_alone(name) if snapshots == 1 else (0.0, 0.0)
            key = self._die(name)
            noted.requests.clear()
            began, spent = time.monotonic_ns(), time.process_time()
            settled = self._recovery().settle(key, Cause.KILLED, Evidence(1, requests_ended=True))
            ended, spent = time.monotonic_ns(), time.process_time() - spent
            if settled is None or settled.document.status is not Status.ROLLED_BACK:
                raise RuntimeError(f"the write was not fenced off: {settled}")
            if turn >= 0:
                verdicts.append((verdict_ns(noted.requests, undone=False) - began) / 1e6)
                done.append((ended - began) / 1e6)
                cpu.append(spent * 1000)
                looks.append(catalog_alone[0])
                commits.append(catalog_alone[1])
        alone = [self._alone(name) for _ in range(max(1, rounds // 3))]
        return IcebergSettleRow(
            snapshots=snapshots,
            rounds=rounds,
            verdict_ms=statistics.median(verdicts),
            verdict_ms_max=max(verdicts),
            done_ms=statistics.median(done),
            done_cpu_ms=statistics.median(cpu),
            peak_mb=max(one.peak_mb for one in alone),
            **alone_in_row(alone),
            look_ms=statistics.median(looks) if snapshots == 1 else None,
            commit_ms=statistics.median(commits) if snapshots == 1 else None,
        )

    def catalog_alone(self, name: TableName) -> tuple[float, float]:
        """Return the times of a read of the table and of a commit that changes a property."""
        began = time.monotonic_ns()
        table = self.load(name)
        looked = time.monotonic_ns()
        with table.transaction() as change:
            change.set_properties({"turn": uuid.uuid4().hex})
        return (looked - began) / 1e6, (time.monotonic_ns() - looked) / 1e6

    def _alone(self, name: TableName) -> Measured:
        variables = {"SOAL_CONF": json.dumps(self.settings), "HOME": os.environ.get("HOME", "/")}
        found = settled_alone(CHECKPOINTS, self._die(name), variables)
        if found.status != Status.ROLLED_BACK:
            raise RuntimeError(f"the write was not fenced off: {found}")
        return found

    def _die(self, name: TableName) -> str:
        """Claim a write, as an attempt that then dies, and leave a file of it. Return its key."""
        write = Write(Run(uuid.uuid4().hex, "bench", "bench", "bench"), name, "iceberg", None)
        claimer = Claimer(self.checkpoints, self._recovery(), write, Attempt.draw(), CommitPoint.WRITE, None)
        claimer.announce()
        table = self.load(name)
        metadata = table.metadata
        head = metadata.refs["main"].snapshot_id
        state = TableState(head, str(metadata.table_uuid), (), {}, catalog=self.where)
        attempt = claimer.claim(state).checkpoint.document.attempt
        folder = data_folder({"location": metadata.location, "properties": metadata.properties}) / name_of(attempt)
        table_store(f"s3://{folder.bucket}").put(f"{folder.key}/left.parquet", b"rows")
        return write.key

    def _recovery(self) -> Recovery:
        return Recovery(self.checkpoints, table_store, clock=epoch_ms, spark_settings=self.settings)
