"""The tables of the report: each of the paper's, with the measured figures beside it."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.lab.experiment import paper
from tests.lab.experiment.estimates import cost_usd_per_month, exposure, upper_bound, wilson
from tests.lab.experiment.plan import DATASETS, FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tests.lab.experiment.record import RunRecord, Truth

__all__ = ["ResultTable", "is_broken", "tables"]

_BROKEN: Final = frozenset({"silent_loss", "visible_error", "false_verdict", "damaged"})
"""Ends that a guarded run must not have."""
_NAMES: Final = {"delta": "Delta Lake", "iceberg": "Apache Iceberg"}
_WHY: Final[dict[Truth, str]] = {
    "committed_when_killed": "the commit had landed; the exit code cannot tell",
    "silent_loss": "the process said it was done, and the rows are not there",
    "false_verdict": "the guard's document says something else than the table",
    "damaged": "the table holds neither the rows before nor those after, or those of a run that said it had failed",
    "not_killed": "the request of the kill never came",
}
"""Why the exit code and the table differ, by the table's outcome."""
_EDGES: Final = (
    ("No", "Yes: the marker stands before the document, and a settler finds it"),
    ("Yes", "By nobody: no document, no error"),
    ("No", "Yes: the document; the handler settles it before it answers"),
    ("No", "Yes: the next settler finishes the undo"),
    ("No", "Yes: the marker"),
    ("No", "Both commits land; with the stock log store one of them may vanish"),
)


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A table; its rows hold text."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def is_broken(record: RunRecord) -> bool:
    """Return whether a guarded run ended as it must not, or the experiment did not do what it planned."""
    broken = record.use_safe_writer and (record.truth in _BROKEN or record.orphans > 0)
    return broken or record.truth == "not_killed"


def tables(records: Sequence[RunRecord]) -> tuple[ResultTable, ...]:
    """Return all tables, in the paper's order."""
    return tuple(
        table
        for table in (
            _sizes(records),
            _design(records),
            _baseline(records),
            _killed(records, "V", "data"),
            _killed(records, "VI", "commit"),
            _guarded(records, "VII and XI"),
            _durations(records),
            _scale(records),
            _gap(records),
            _exposure(records),
            _storage(records),
            _edges(),
            _overhead(records),
            _disagreements(records),
            _promise(records),
        )
        if table.rows
    )


def _sizes(records: Sequence[RunRecord]) -> ResultTable:
    rows = []
    for name in DATASETS:
        found = next((one.rows_expected for one in records if one.dataset == name), None)
        if found is not None:
            rows.append((name, f"{found:,}", f"{paper.SIZES_MB[name]} MB"))
    return ResultTable("II. Data sets", ("size", "rows", "paper: CSV"), tuple(rows))


def _design(records: Sequence[RunRecord]) -> ResultTable:
    counts = Counter(one.cell for one in records)
    rows = [(*_words(cell), str(count)) for cell, count in sorted(counts.items())]
    rows.append(("", "", "", "all", "", str(len(records))))
    return ResultTable("III. Runs", ("part", "format", "rows", "kill", "guard", "runs"), tuple(rows))


def _baseline(records: Sequence[RunRecord]) -> ResultTable:
    rows = []
    for one in FORMATS:
        found = _of(records, "A", one, "22k", "", guarded=False)
        if found:
            good = [record for record in found if record.truth == "success"]
            mean, deviation = _mean(record.duration_ms for record in good)
            theirs = paper.BASELINE_MS[one]
            rows.append((_NAMES[one], _share(len(good), len(found)), mean, deviation, f"{theirs[0]:,}", str(theirs[1])))
    header = ("format", "success", "mean, ms", "deviation", "paper: mean, ms", "deviation")
    return ResultTable("IV. Baseline, 22k rows", header, tuple(rows), "From the start of the process to its end.")


def _killed(records: Sequence[RunRecord], number: str, phase: str) -> ResultTable:
    rows = []
    for one in FORMATS:
        found = _of(records, "A", one, "22k", phase, guarded=False)
        if found:
            rows.append((_NAMES[one], *_shares(found), "100 %"))
    header = ("format", "runs", "silent loss, by exit code", "rows missing", "95 %", "files left", "paper: silent loss")
    where = {"data": "after the data, before any metadata", "commit": "in the request of the commit"}[phase]
    return ResultTable(f"{number}. Killed {where}, no guard", header, tuple(rows))


def _guarded(records: Sequence[RunRecord], number: str) -> ResultTable:
    rows = []
    for one in FORMATS:
        for phase in ("data", "commit"):
            found = _of(records, "A", one, "22k", phase, guarded=True)
            if found:
                good = sum(record.truth == "rollback_success" for record in found)
                left = sum(record.orphans for record in found)
                settled = statistics.median(record.settle_ms or 0 for record in found)
                rows.append(
                    (
                        _NAMES[one],
                        phase,
                        _share(good, len(found)),
                        _interval(good, len(found)),
                        str(left),
                        f"{settled:.0f}",
                        "25 (100 %)",
                    )
                )
    header = ("format", "kill", "rolled back", "95 %", "files left", "recovery, ms", "paper: rolled back")
    note = (
        "Files left: data files that no version names, after recovery. Its time is that on a machine which other runs"
        " share."
    )
    return ResultTable(f"{number}. Killed, guarded", header, tuple(rows), note)


def _durations(records: Sequence[RunRecord]) -> ResultTable:
    rows = []
    for one in FORMATS:
        for size in DATASETS:
            base = _of(records, "B", one, size, "", guarded=False)
            killed = _of(records, "B", one, size, "data", guarded=False)
            if base and killed:
                theirs = paper.DURATIONS_MS[one, size]
                good = [record.duration_ms for record in base if record.truth == "success"]
                rows.append(
                    (
                        _NAMES[one],
                        size,
                        _share(len(good), len(base)),
                        _mean(good)[0],
                        _mean(record.duration_ms for record in killed)[0],
                        "failed" if theirs[0] is None else f"{theirs[0]:,}",
                        f"{theirs[1]:,}",
                    )
                )
    header = ("format", "rows", "success", "baseline, ms", "killed, ms", "paper: baseline", "killed")
    return ResultTable("VIII. Durations by size", header, tuple(rows), "Each run had the machine for itself.")


def _scale(records: Sequence[RunRecord]) -> ResultTable:
    rows = []
    for one in FORMATS:
        for size in DATASETS:
            found = _of(records, "B", one, size, "data", guarded=False)
            if found:
                rows.append((_NAMES[one], size, *_shares(found), "100 %"))
    header = ("format", "rows", "runs", "silent loss, by exit code", "rows missing", "95 %", "files left", "paper")
    return ResultTable("IX. Killed after the data, by size", header, tuple(rows))


def _gap(records: Sequence[RunRecord]) -> ResultTable:
    rows = [
        (
            _NAMES[gap.table_format],
            gap.dataset,
            f"{statistics.median(gap.by_requests):.0f}",
            f"{min(gap.by_requests):.0f} to {max(gap.by_requests):.0f}",
            "" if gap.by_means is None else f"{gap.by_means:.0f}",
            "" if gap.of_paper is None else f"{gap.of_paper:,}",
        )
        for gap in _gaps(records)
    ]
    header = ("format", "rows", "by requests: median, ms", "range", "as the paper, ms", "paper, ms")
    note = (
        "By requests: from the answer to the last PUT of data to that of the commit. As the paper: the mean of the"
        " baselines less that of the killed runs, which holds all that a process does after the kill, to its end."
    )
    return ResultTable("The gap, measured in two ways", header, tuple(rows), note)


def _exposure(records: Sequence[RunRecord]) -> ResultTable:
    rows = [
        (
            _NAMES[gap.table_format],
            gap.dataset,
            f"{100 * exposure(statistics.median(gap.by_requests), paper.WINDOW_S):.1f} %",
            "" if gap.by_means is None else f"{100 * exposure(gap.by_means, paper.WINDOW_S):.0f} %",
            "" if gap.of_paper is None else f"{100 * exposure(gap.of_paper, paper.WINDOW_S):.0f} %",
        )
        for gap in _gaps(records)
    ]
    header = ("format", "rows", "by requests", "as the paper", "paper")
    note = f"Equation 1, for jobs that end within the last {paper.WINDOW_S:.0f} s of their time."
    return ResultTable("Exposure of an unguarded write", header, tuple(rows), note)


def _storage(records: Sequence[RunRecord]) -> ResultTable:
    rows = []
    for one in FORMATS:
        for size in DATASETS:
            found = [
                record
                for record in records
                if record.table_format == one
                and record.dataset == size
                and record.kill_phase
                and not record.use_safe_writer
            ]
            if found:
                mean = statistics.mean(record.orphan_bytes for record in found)
                rows.append(
                    (
                        _NAMES[one],
                        size,
                        f"{mean / 1e6:.2f} MB",
                        f"{paper.SIZES_MB[size]} MB",
                        f"{cost_usd_per_month(300 * mean):.4f} $",
                    )
                )
    header = ("format", "rows", "left by one kill", "paper", "300 kills, a month (4)")
    return ResultTable(
        "Orphaned storage, no guard", header, tuple(rows), "The paper counts the CSV file; ours are Parquet."
    )


def _edges() -> ResultTable:
    rows = tuple((*theirs, *ours) for theirs, ours in zip(paper.EDGE_CASES, _EDGES, strict=True))
    note = (
        "The last two columns are the design's; these runs do not try them, tests/faults and `scripts/lab faults` do."
    )
    return ResultTable(
        "X. Edge cases", ("case", "paper: lost?", "detectable?", "by design: lost?", "detectable?"), rows, note
    )


def _overhead(records: Sequence[RunRecord]) -> ResultTable:
    rows = []
    for one in FORMATS:
        plain = [record for record in _baselines(records, one, "22k") if record.truth == "success"]
        guarded = [record for record in _of(records, "O", one, "22k", "", guarded=True) if record.truth == "success"]
        undone = [record for record in records if record.table_format == one and record.fails]
        if plain and guarded:
            added = statistics.mean(one_.duration_ms for one_ in guarded) - statistics.mean(
                one_.duration_ms for one_ in plain
            )
            undo = [record.end_ms for record in undone if record.end_ms is not None]
            rows.append(
                (
                    _NAMES[one],
                    f"{added:+.0f}",
                    f"< {paper.OVERHEAD_MS}",
                    f"{statistics.median(undo):.0f}" if undo else "",
                    f"{paper.ROLLBACK_MS[0]} to {paper.ROLLBACK_MS[1]}",
                )
            )
    header = ("format", "guard, ms", "paper", "undo of a landed commit, ms", "paper: rollback")
    note = (
        "The guard's cost as the paper measures it, a difference of means over whole processes; `scripts/lab bench"
        " guard` has it in pairs. A guarded Iceberg write shows nothing before success(), so its undo is none."
    )
    return ResultTable("Overhead and rollback", header, tuple(rows), note)


def _disagreements(records: Sequence[RunRecord]) -> ResultTable:
    counts = Counter((record.outcome, record.truth) for record in records if record.outcome != record.truth)
    rows = [(str(told), str(found), str(count), _WHY[found]) for (told, found), count in counts.items()]
    header = ("by the exit code", "by the table", "runs", "why")
    return ResultTable("Where the two classifiers disagree", header, tuple(rows) or (("nowhere", "", "0", ""),))


def _promise(records: Sequence[RunRecord]) -> ResultTable:
    guarded = [record for record in records if record.use_safe_writer]
    if not guarded:
        return ResultTable("", (), ())
    killed, broken = sum(record.killed for record in guarded), sum(map(is_broken, guarded))
    bound = f"{100 * upper_bound(killed):.2f} %" if killed and not broken else ""
    header = ("guarded runs", "of them killed", "broken promises", "95 % upper bound, of the killed")
    return ResultTable("The promise", header, ((str(len(guarded)), str(killed), str(broken), bound),))


def _of(
    records: Sequence[RunRecord], part: str, table_format: str, dataset: str, phase: str, *, guarded: bool
) -> list[RunRecord]:
    return [
        record
        for record in records
        if record.cell.startswith(f"{part}-")
        and record.table_format == table_format
        and record.dataset == dataset
        and record.kill_phase == phase
        and record.use_safe_writer is guarded
        and not record.fails
    ]


def _baselines(records: Sequence[RunRecord], table_format: str, dataset: str) -> list[RunRecord]:
    parts = (_of(records, part, table_format, dataset, "", guarded=False) for part in "AB")
    return [record for part in parts for record in part]


@dataclass(frozen=True, slots=True)
class _Gap:
    """The gaps of a format and size, in ms. `by_means`: measured as in the paper; `of_paper`: its own."""

    table_format: str
    dataset: str
    by_requests: Sequence[float]
    by_means: float | None
    of_paper: float | None


def _gaps(records: Sequence[RunRecord]) -> Iterator[_Gap]:
    for one in FORMATS:
        for size in DATASETS:
            found = [record.gap_ms for record in _baselines(records, one, size) if record.gap_ms is not None]
            if found:
                of_paper = paper.GAP_MS.get(size) if one == "delta" else None
                yield _Gap(one, size, found, _gap_by_means(records, one, size), of_paper)


def _gap_by_means(records: Sequence[RunRecord], table_format: str, dataset: str) -> float | None:
    whole = [record.duration_ms for record in _of(records, "B", table_format, dataset, "", guarded=False)]
    killed = [record.duration_ms for record in _of(records, "B", table_format, dataset, "data", guarded=False)]
    return statistics.mean(whole) - statistics.mean(killed) if whole and killed else None


def _shares(found: Sequence[RunRecord]) -> Iterator[str]:
    by_code = sum(record.outcome == "silent_loss" for record in found)
    missing = sum(record.rows_added == 0 for record in found)
    yield from (str(len(found)), _share(by_code, len(found)), _share(missing, len(found)))
    yield from (_interval(missing, len(found)), str(sum(record.orphans for record in found)))


def _share(hits: int, runs: int) -> str:
    return f"{hits} ({100 * hits / runs:.0f} %)"


def _interval(hits: int, runs: int) -> str:
    low, high = wilson(hits, runs)
    return f"{100 * low:.1f} to {100 * high:.1f} %"


def _mean(found: Iterable[float]) -> tuple[str, str]:
    numbers = [*found]
    if not numbers:
        return "", ""
    return f"{statistics.mean(numbers):,.0f}", f"{statistics.stdev(numbers):,.0f}" if len(numbers) > 1 else ""


def _words(cell: str) -> tuple[str, ...]:
    return tuple(cell.split("-"))
