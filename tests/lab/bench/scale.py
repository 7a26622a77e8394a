"""Appends of increasing numbers of rows, plain and guarded in turn, in one warm session for each memory size.

S3 and each session run in their own processes: that the kernel or Java ends one for lack of memory is a result.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self
from unittest.mock import patch

from safewriter.objects.s3 import s3_client
from tests.lab.bench.catalog import CATALOG, in_file
from tests.lab.bench.container import container
from tests.lab.bench.scale_session import DONE, KILLED
from tests.lab.processes import Child

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from scripts.image.docker import Docker
    from tests.lab.bench.container import Container

__all__ = ["FORMATS", "MEMORY_MB", "ROWS", "ScaleRow", "Spent", "measure", "row_of"]

FORMATS: Final = ("delta", "iceberg")
ROWS: Final = (10_000, 100_000, 1_000_000, 10_000_000)
MEMORY_MB: Final = (1_769, 10_240)
_LAKE: Final = "bench-lake"
_CHECKPOINTS: Final = "bench-checkpoints"
_WARM_UP: Final = 3
_WARM_UP_ROWS: Final = 10_000
_KILLED_EXITS: Final = (-9, 137)
_KEYS_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class ScaleRow:
    """Medians over pairs of appends of `rows` rows of 14 columns, in a function of `memory_mb`, of which `heap_mb` is
    Java's heap. Times are seconds; memory is MB.

    `limit`: `container` enforces the memory; with `unlimited` only the heap has a limit. `…_end`: `done`; `killed` by
    the kernel for memory; `heap full`, after which Java exits; or another failure. `pairs` counts the pairs of which
    both ways are done. `added_s` is the median of their differences, `guard_share` the median of these by the guarded
    append's time: as noisy as the appends, and possibly negative. `…_jvm_mb`: the peak resident memory of the JVM
    during the append, including memory that earlier appends have touched.
    """

    memory_mb: int
    limit: str
    heap_mb: int
    format: str
    rows: int
    pairs: int
    plain_end: str
    guarded_end: str
    plain_s: float | None
    guarded_s: float | None
    added_s: float | None
    guard_share: float | None
    plain_rows_per_s: float | None
    guarded_rows_per_s: float | None
    plain_jvm_mb: float | None
    guarded_jvm_mb: float | None


@dataclass(frozen=True, slots=True)
class Spent:
    """One append: how it ended, and, if it is done, its seconds and the peak of the JVM's memory in MB."""

    end: str
    seconds: float = 0.0
    jvm_mb: float = 0.0


def measure(
    rows: Sequence[int] = ROWS,
    memory_mb: Sequence[int] = MEMORY_MB,
    formats: Sequence[str] = FORMATS,
    rounds: int = 3,
    docker: Docker | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[ScaleRow, ...]:
    """Run `rounds` pairs for each size, format and number of rows; `progress` gets the number done.

    With `docker` a container limits each session's memory.
    """
    found: list[ScaleRow] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soal-bench-")))
        s3 = stack.enter_context(Child("tests.lab.bench.s3_server", (_LAKE, _CHECKPOINTS), folder))
        aws = s3.ready["environment"]
        catalog = json.dumps(in_file(folder, f"s3a://{_LAKE}/w"))
        stack.enter_context(patch.dict(os.environ, aws, SW_CHECKPOINT_BUCKET=_CHECKPOINTS, BENCH_CATALOG=catalog))
        held = None if docker is None else stack.enter_context(container(docker, folder))
        done = itertools.count(1)
        for size_mb in memory_mb:
            with _Sessions(size_mb, folder, held, formats) as sessions:
                for count, lake_format in itertools.product(rows, formats):
                    pairs = _pairs(sessions, lake_format, count, rounds, lambda: progress(next(done)))
                    found.append(row_of(size_mb, sessions.limit, sessions.heap_mb, lake_format, count, pairs))
    return tuple(found)


def _pairs(
    sessions: _Sessions, lake_format: str, rows: int, rounds: int, progress: Callable[[], None]
) -> list[tuple[Spent, Spent]]:
    """Append in turn. A way that has failed is not repeated: it would fail again."""
    plain, guarded = (_table(lake_format, way, sessions.memory_mb, rows) for way in ("plain", "guarded"))
    sessions.prepare(lake_format, (plain, guarded))
    pairs: list[tuple[Spent, Spent]] = []
    for _ in range(rounds):
        pairs.append(
            (sessions.append(lake_format, plain, rows), sessions.append(lake_format, guarded, rows, "guarded"))
        )
        _delete_data()
        progress()
        if any(spent.end != DONE for spent in pairs[-1]):
            break
    return pairs


def _table(lake_format: str, way: str, memory_mb: int, rows: int) -> str:
    name = f"{way}_{memory_mb}_{rows}"
    return f"{CATALOG}.db.{name}" if lake_format == "iceberg" else f"s3a://{_LAKE}/{name}"


def _delete_data() -> None:
    """Delete the tables' data: the S3 holds it in memory, and no append reads it."""
    client = s3_client()
    for page in client.get_paginator("list_objects_v2").paginate(
        Bucket=_LAKE, PaginationConfig={"PageSize": _KEYS_MAX}
    ):
        keys = [one["Key"] for one in page.get("Contents", ())]
        data = [key for key in keys if key.endswith(".parquet") and "/_delta_log/" not in key]
        if data:
            client.delete_objects(Bucket=_LAKE, Delete={"Objects": [{"Key": key} for key in data]})


def row_of(
    memory_mb: int, limit: str, heap_mb: int, lake_format: str, rows: int, pairs: Sequence[tuple[Spent, Spent]]
) -> ScaleRow:
    """Return the figures of pairs of a plain and a guarded append."""
    whole = [(plain, guarded) for plain, guarded in pairs if plain.end == guarded.end == DONE]
    plain_s = _median([plain.seconds for plain, _ in pairs if plain.end == DONE])
    guarded_s = _median([guarded.seconds for _, guarded in pairs if guarded.end == DONE])
    return ScaleRow(
        memory_mb=memory_mb,
        limit=limit,
        heap_mb=heap_mb,
        format=lake_format,
        rows=rows,
        pairs=len(whole),
        plain_end=pairs[-1][0].end,
        guarded_end=pairs[-1][1].end,
        plain_s=plain_s,
        guarded_s=guarded_s,
        added_s=_median([guarded.seconds - plain.seconds for plain, guarded in whole]),
        guard_share=_median([(guarded.seconds - plain.seconds) / guarded.seconds for plain, guarded in whole]),
        plain_rows_per_s=None if plain_s is None else rows / plain_s,
        guarded_rows_per_s=None if guarded_s is None else rows / guarded_s,
        plain_jvm_mb=max((plain.jvm_mb for plain, _ in pairs if plain.end == DONE), default=None),
        guarded_jvm_mb=max((guarded.jvm_mb for _, guarded in pairs if guarded.end == DONE), default=None),
    )


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


class _Sessions:
    """A context manager: a warm session of a memory size, replaced whenever one has died."""

    def __init__(self, memory_mb: int, folder: Path, held: Container | None, formats: Sequence[str]) -> None:
        self.memory_mb = memory_mb
        self.heap_mb = 0
        self.limit = "unlimited" if held is None else "container"
        self._folder = folder
        self._formats = formats
        self._inside = () if held is None else held.words(memory_mb, os.environ)
        self._stack = ExitStack()
        self._child: Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child = None
        self._stack.close()

    def prepare(self, lake_format: str, tables: Sequence[str]) -> None:
        """Create tables."""
        child = self._warm()
        child.ask(prepare=lake_format, tables=tables)
        child.answer()

    def append(self, lake_format: str, table: str, rows: int, way: str = "plain") -> Spent:
        """Append; drop the session if it has died."""
        spent = _appended(self._warm(), lake_format, table, rows, way)
        if spent.end != DONE:
            self.__exit__()
        return spent

    def _warm(self) -> Child:
        if self._child is None:
            arguments = (self.memory_mb, self._folder)
            child = Child("tests.lab.bench.scale_session", arguments, self._folder, self._inside)
            self._child = self._stack.enter_context(child)
            self.heap_mb = child.ready["heap_mb"]
            for lake_format in self._formats:
                table = _table(lake_format, f"warm_up_{child.pid}", self.memory_mb, _WARM_UP_ROWS)
                self.prepare(lake_format, (table,))
                for _, way in itertools.product(range(_WARM_UP), ("plain", "guarded")):
                    _require(_appended(child, lake_format, table, _WARM_UP_ROWS, way))
        return self._child


def _appended(child: Child, lake_format: str, table: str, rows: int, way: str) -> Spent:
    child.ask(append=lake_format, table=table, rows=rows, guarded=way == "guarded")
    try:
        told: Mapping[str, Any] = child.answer()
    except RuntimeError:
        # The kernel killed Python, not Java. The exit code is available after the output ends.
        if child.wait() not in _KILLED_EXITS:
            raise
        return Spent(KILLED)
    return Spent(told["outcome"], told.get("seconds", 0.0), told.get("jvm_mb", 0.0))


def _require(spent: Spent) -> None:
    if spent.end != DONE:
        raise RuntimeError(f"the warm-up of {_WARM_UP_ROWS} rows ended: {spent.end}")
