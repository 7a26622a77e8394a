"""Builds of snapshots beside a bare loop that only hashes, sorts and inserts into SQLite, and reads of the snapshot.

Each round runs both for each number of rows and of shards. The bare loop has two processes with half of the rows each,
in Python lists; a build reads the rows from Parquet files, shuffles them between two cores, checks and uploads them.
The machine may be busy with other work: the ratios within a round are comparable, especially those of CPU seconds.
"""

from __future__ import annotations

import itertools
import os
import statistics
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from unittest.mock import patch

from safewriter.objects.s3 import s3_client
from tests.lab.bench.snapshot_reads import ReadCost, measure_reads
from tests.lab.bench.snapshot_rows import write_files
from tests.lab.processes import Child, Peaks, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = ["BuildCost", "SnapshotCost", "measure"]

_BUCKET: Final = "bench-snapshots"
_WARM_UP_ROWS: Final = 1_000_000
"""Java compiles for seconds until it has processed about this many rows."""
_BARE: Final = 2


@dataclass(frozen=True, slots=True)
class BuildCost:
    """Medians over the rounds; the memory is the highest of them, resident, in MB. `ratio`: the bare loop's figure by
    the build's in the same round; 1 is as fast as the bare loop.
    """

    rows: int
    shards: int
    rows_per_s: float
    wall_s: float
    cpu_s: float
    cpu_driver_s: float
    cpu_jvm_s: float
    cpu_workers_s: float
    bare_wall_s: float
    bare_cpu_s: float
    wall_ratio: float
    cpu_ratio: float
    driver_mb: float
    jvm_mb: float
    workers_mb: float
    worker_mb: float


@dataclass(frozen=True, slots=True)
class SnapshotCost:
    """A row for each number of rows and shards."""

    rounds: int
    builds: tuple[BuildCost, ...]
    reads: tuple[ReadCost, ...]


@dataclass(frozen=True, slots=True)
class _Build:
    """`parts`: the CPU seconds of driver, JVM and workers; `mb`: their peak memory."""

    wall_s: float
    parts: Mapping[str, float]
    mb: Mapping[str, float]

    @property
    def cpu_s(self) -> float:
        return sum(self.parts.values())


@dataclass(frozen=True, slots=True)
class _Bare:
    wall_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class _Round:
    build: _Build
    bare: _Bare


def measure(
    rows: Sequence[int] = (100_000, 1_000_000),
    shards: Sequence[int] = (1, 8, 64),
    rounds: int = 4,
    reads: int = 20_000,
    progress: Callable[[int], None] = lambda _: None,
) -> SnapshotCost:
    """Run `rounds` rounds for each number of rows; `progress` gets the number done."""
    builds: list[BuildCost] = []
    found: list[ReadCost] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soal-bench-")))
        server = stack.enter_context(Child("tests.lab.bench.s3_server", (_BUCKET,), folder))
        stack.enter_context(patch.dict(os.environ, server.ready["environment"]))
        os.environ.pop("SW_CHECKPOINT_BUCKET", None)  # patch.dict restores it
        builder = stack.enter_context(Child("tests.lab.bench.snapshot_builder", (folder,), folder))
        bench = _Bench(folder, builder)
        bench.build(min(_WARM_UP_ROWS, max(rows)), max(shards))
        for turn, count in enumerate(rows):
            spent: dict[int, list[_Round]] = {number: [] for number in shards}
            with _bare_loops(count, folder) as loops:
                for done in range(rounds):
                    for number in shards:
                        bare = _bare(loops, number)
                        spent[number].append(_Round(bench.build(count, number), bare))
                        if done == rounds - 1:
                            found.append(measure_reads(bench.prefix, count, number, reads))
                    progress(turn * rounds + done + 1)
            builds += [_cost(count, number, taken) for number, taken in spent.items()]
    return SnapshotCost(rounds, tuple(builds), tuple(found))


class _Bench:
    """Builds, one after the other; the objects of each are deleted before the next."""

    def __init__(self, folder: Path, builder: Child) -> None:
        self.prefix = f"s3://{_BUCKET}/snapshot"
        self._folder = folder
        self._builder = builder
        self._client = s3_client()

    def build(self, rows: int, shards: int) -> _Build:
        source = self._folder / f"rows-{rows}"
        if not source.exists():
            write_files(rows, source)
        self._clear()
        usage = Usage(self._builder.pid)
        before = usage.cpu_s()
        with Peaks(usage) as peaks:
            self._builder.ask(source=str(source), prefix=self.prefix, shards=shards)
            built = self._builder.answer()
        after = usage.cpu_s()
        if built["rows"] != rows:
            raise RuntimeError(f"{built['rows']} of {rows} rows were written")
        return _Build(built["wall_s"], {kind: after[kind] - before[kind] for kind in after}, peaks.mb)

    def _clear(self) -> None:
        for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=_BUCKET):
            for found in page.get("Contents", ()):
                self._client.delete_object(Bucket=_BUCKET, Key=found["Key"])


@contextmanager
def _bare_loops(rows: int, folder: Path) -> Iterator[list[Child]]:
    bounds = [rows * number // _BARE for number in range(_BARE + 1)]
    with ExitStack() as stack:
        yield [
            stack.enter_context(Child("tests.lab.bench.snapshot_bare", (first, last, folder), folder))
            for first, last in itertools.pairwise(bounds)
        ]


def _bare(loops: list[Child], shards: int) -> _Bare:
    for loop in loops:
        loop.ask(shards=shards)
    answers = [loop.answer() for loop in loops]
    wall_s = max(one["ended_s"] for one in answers) - min(one["began_s"] for one in answers)
    return _Bare(wall_s, sum(one["cpu_s"] for one in answers))


def _cost(rows: int, shards: int, rounds: list[_Round]) -> BuildCost:
    def median(of: Callable[[_Round], float]) -> float:
        return statistics.median(of(one) for one in rounds)

    def peak(kind: str) -> float:
        return max(one.build.mb.get(kind, 0.0) for one in rounds)

    wall_s = median(lambda one: one.build.wall_s)
    return BuildCost(
        rows=rows,
        shards=shards,
        rows_per_s=rows / wall_s,
        wall_s=wall_s,
        cpu_s=median(lambda one: one.build.cpu_s),
        cpu_driver_s=median(lambda one: one.build.parts["driver"]),
        cpu_jvm_s=median(lambda one: one.build.parts["jvm"]),
        cpu_workers_s=median(lambda one: one.build.parts["workers"]),
        bare_wall_s=median(lambda one: one.bare.wall_s),
        bare_cpu_s=median(lambda one: one.bare.cpu_s),
        wall_ratio=median(lambda one: one.bare.wall_s / one.build.wall_s),
        cpu_ratio=median(lambda one: one.bare.cpu_s / one.build.cpu_s),
        driver_mb=peak("driver"),
        jvm_mb=peak("jvm"),
        workers_mb=peak("workers"),
        worker_mb=peak("worker"),
    )
