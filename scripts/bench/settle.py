"""What a verdict on a dead Iceberg write takes without Java: what is staged is picked, published, told, cleaned up.

Beside it, in turn, what the catalog alone takes for a look and a commit. One SQL catalog, one embedded S3, both here.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from safewriter.checkpoint import Checkpoints
from safewriter.claim import Claimer
from safewriter.deadline import epoch_ms
from safewriter.identity import Attempt, Run, Write
from safewriter.objects.location import Location
from safewriter.objects.s3 import open_store, table_store
from safewriter.recovery import Cause, Recovery
from safewriter.state import CommitPoint, Status
from safewriter.tables.iceberg.catalog import OneTable
from safewriter.tables.iceberg.name import TableName
from safewriter.tables.iceberg.publishing import make_branch
from safewriter.tables.iceberg.settings import to_pyiceberg
from safewriter.tables.iceberg.staging import EPOCH, WRITE, branch_of, head_of
from safewriter.tables.session import TableState
from scripts.emulator.iceberg_writer import add
from scripts.emulator.s3 import EmbeddedS3

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SettleCost", "measure"]

_LAKE: Final = "bench-lake"
_CHECKPOINTS: Final = "bench-checkpoints"
_WARM_UP: Final = 2
_NAME: Final = TableName.parse("bench.db.t")


@dataclass(frozen=True, slots=True)
class SettleCost:
    """Medians in milliseconds over `rounds` dead writes. `beyond_ms` is the verdict's time without the catalog's own:
    two looks and one commit, which is what publishing needs.
    """

    rounds: int
    verdict_ms: float
    verdict_ms_min: float
    verdict_ms_max: float
    look_ms: float
    commit_ms: float
    beyond_ms: float


def measure(rounds: int = 20, progress: Callable[[int], None] = lambda _: None) -> SettleCost:
    """Settle `rounds` dead writes; `progress` hears how many are done."""
    before = dict(os.environ)
    with EmbeddedS3(buckets=(_LAKE, _CHECKPOINTS)) as s3, tempfile.TemporaryDirectory(prefix="soal-bench-") as folder:
        os.environ.update(s3.environment())
        try:
            return _Bench(folder).measure(rounds, progress)
        finally:
            os.environ.clear()
            os.environ.update(before)


class _Bench:
    def __init__(self, folder: str) -> None:
        self.catalog = {"type": "jdbc", "uri": f"jdbc:sqlite:{folder}/bench.db", "warehouse": f"s3://{_LAKE}/w"}
        own = {**to_pyiceberg(_NAME.catalog, self.catalog), "init_catalog_tables": "true"}
        made = load_catalog(_NAME.catalog, **own)
        made.create_namespace("db")
        made.create_table(_NAME.identifier, Schema(NestedField(1, "id", LongType(), required=False)))
        self.one = OneTable(_NAME, self.catalog, table_store)
        self.checkpoints = Checkpoints(open_store(Location(_CHECKPOINTS)))
        add(self.one.load(), "main", self.path("first"))

    def path(self, name: str) -> str:
        return f"{self.one.load().metadata.location}/data/{name}.parquet"

    def measure(self, rounds: int, progress: Callable[[int], None]) -> SettleCost:
        verdicts, looks, commits = [], [], []
        for turn in range(-_WARM_UP, rounds):
            look_ms, commit_ms = self.catalog_alone()
            verdict_ms = self.verdict()
            if turn >= 0:
                verdicts.append(verdict_ms)
                looks.append(look_ms)
                commits.append(commit_ms)
                progress(turn + 1)
        middle, look_ms, commit_ms = (statistics.median(taken) for taken in (verdicts, looks, commits))
        return SettleCost(
            rounds=rounds,
            verdict_ms=middle,
            verdict_ms_min=min(verdicts),
            verdict_ms_max=max(verdicts),
            look_ms=look_ms,
            commit_ms=commit_ms,
            beyond_ms=middle - 2 * look_ms - commit_ms,
        )

    def catalog_alone(self) -> tuple[float, float]:
        """What a look at the table and a commit that changes a property take."""
        began = time.monotonic_ns()
        table = self.one.load()
        looked = time.monotonic_ns()
        with table.transaction() as change:
            change.set_properties({"turn": uuid.uuid4().hex})
        return (looked - began) / 1e6, (time.monotonic_ns() - looked) / 1e6

    def verdict(self) -> float:
        """Stage a write as a dead attempt does, and settle it."""
        recovery = Recovery(self.checkpoints, table_store, clock=epoch_ms)
        write = Write(Run(uuid.uuid4().hex, "bench", "bench", "bench"), _NAME, "iceberg", None)
        claimer = Claimer(self.checkpoints, recovery, write, Attempt.draw(), CommitPoint.WRITE, None, 0)
        claimer.mark()
        table = self.one.load()
        base = head_of(table.metadata, "main") or 0
        before = TableState(base, str(table.metadata.table_uuid), (), {}, catalog=self.catalog)
        document = claimer.claim(before).held.document
        branch = branch_of(document.attempt)
        make_branch(self.one, table, branch, base, {})
        marks = {WRITE: document.write_key, EPOCH: str(document.epoch)}
        add(self.one.load(), branch, self.path(f"{branch}-x"), marks=marks)
        began = time.monotonic_ns()
        settled = recovery.settle(write.key, Cause.KILLED)
        taken_ms = (time.monotonic_ns() - began) / 1e6
        if settled is None or settled.document.status is not Status.COMMITTED:
            raise RuntimeError(f"the write was not published: {settled}")
        return taken_ms
