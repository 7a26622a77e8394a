"""Builds of snapshots beside each other, in one warm session: full, incremental, and by shardyfusion's writer.

All write the same rows to an embedded S3, one after the other. The machine may be busy with other work: the ratios
within a round are comparable, especially those of CPU seconds.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from safewriter.snapshots.routing.hashing import remainders
from tests.lab.bench.snapshot_rows import keys, write_files
from tests.lab.processes import Child, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["BesideCost", "measure_beside"]

_BUCKET: Final = "bench-snapshots"
_CHANGED: Final = 100
"""One key in a hundred."""


@dataclass(frozen=True, slots=True)
class BesideCost:
    """Medians over the rounds. The ratios: the full build's figure by this one's in the same round; above 1 is faster.
    `taken_over`: how many shards need not be written.
    """

    build: str
    rows: int
    shards: int
    taken_over: int
    wall_s: float
    cpu_s: float
    wall_ratio: float
    cpu_ratio: float


@dataclass(frozen=True, slots=True)
class _Spent:
    wall_s: float
    cpu_s: float
    taken_over: int


@dataclass(frozen=True, slots=True)
class _Kind:
    """A build: its prefix, and the source; `None` rows are those of the previous snapshot."""

    name: str
    how: str
    prefix: str
    source: str


def _kinds(*, has_peer: bool) -> tuple[_Kind, ...]:
    """Return the builds of a round in their order: each incremental one follows the snapshot that it changes."""
    kinds = (
        _Kind("full", "full", "full", "rows"),
        _Kind("incremental, the first", "incremental", "kept", "rows"),
        _Kind("incremental, nothing changed", "incremental", "kept", "rows"),
        _Kind("incremental, 1 % of the keys changed, all in one shard", "incremental", "kept", "one"),
        _Kind("incremental, 1 % of the keys changed, in all shards", "incremental", "kept", "any"),
    )
    return (*kinds, _Kind("full, by shardyfusion", "peer", "peer", "rows")) if has_peer else kinds


def measure_beside(
    rows: int,
    shards: int,
    rounds: int,
    peer: str | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[BesideCost, ...]:
    """Run `rounds` rounds after one to warm up. `peer`: the folders of shardyfusion and its packages, as in PYTHONPATH;
    None: without it.
    """
    kinds = _kinds(has_peer=peer is not None)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soal-bench-")))
        server = stack.enter_context(Child("tests.lab.bench.s3_server", (_BUCKET,), folder))
        stack.enter_context(patch.dict(os.environ, server.ready["environment"]))
        os.environ.pop("SW_CHECKPOINT_BUCKET", None)  # patch.dict restores it
        variables = {} if peer is None else {"SHARDYFUSION": peer}
        builder = stack.enter_context(Child("tests.lab.bench.snapshot_builder", (folder,), folder, variables=variables))
        usage = Usage(builder.pid)
        spent: dict[str, list[_Spent]] = {kind.name: [] for kind in kinds}
        for number in range(rounds + 1):
            count = rows if number else max(1000, rows // 5)
            sources = _sources(count, shards, folder)
            for kind in kinds:
                before = sum(usage.cpu_s().values())
                prefix = f"s3://{_BUCKET}/{kind.prefix}-{number}"
                builder.ask(source=str(sources[kind.source]), prefix=prefix, shards=shards, how=kind.how)
                built = builder.answer()
                if built["rows"] != count:
                    raise RuntimeError(f"{built['rows']} of {count} rows were written")
                if number:
                    after = sum(usage.cpu_s().values())
                    spent[kind.name].append(_Spent(built["wall_s"], after - before, built["taken_over"]))
            progress(number)
    return costs(rows, shards, spent)


def costs(rows: int, shards: int, spent: Mapping[str, Sequence[_Spent]]) -> tuple[BesideCost, ...]:
    """Return a row for each build; the first one is the full build."""
    full = next(iter(spent.values()))
    return tuple(
        BesideCost(
            build=name,
            rows=rows,
            shards=shards,
            taken_over=taken[-1].taken_over,
            wall_s=statistics.median(one.wall_s for one in taken),
            cpu_s=statistics.median(one.cpu_s for one in taken),
            wall_ratio=statistics.median(whole.wall_s / one.wall_s for whole, one in zip(full, taken, strict=True)),
            cpu_ratio=statistics.median(whole.cpu_s / one.cpu_s for whole, one in zip(full, taken, strict=True)),
        )
        for name, taken in spent.items()
    )


def _sources(rows: int, shards: int, folder: Path) -> dict[str, Path]:
    """Write the rows, and two sets with other values for 1 % of the keys: of one shard, and of all."""
    found = {name: folder / f"{name}-{rows}" for name in ("rows", "one", "any")}
    if not found["rows"].exists():
        of_one = np.flatnonzero(remainders(pa.array(keys(range(rows))), shards) == 0)[: rows // _CHANGED]
        write_files(rows, found["rows"])
        write_files(rows, found["one"], set(of_one.tolist()))
        write_files(rows, found["any"], set(range(0, rows, _CHANGED)))
    return found
