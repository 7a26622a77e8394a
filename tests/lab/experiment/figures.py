"""The figures of the report: outcomes, the gap, the requests of one write, verdicts, times of recovery."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tests.lab.experiment.plan import DATASETS, FORMATS
from tests.lab.pictures.plot import COLOURS, WIDTH, figure, legend, panel, png, svg

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.figure import Figure as Drawn

    from tests.lab.experiment.record import RunRecord, Span, Truth
    from tests.lab.pictures.plot import Tone

__all__ = ["Figure", "figures"]

_LEFT: Final = 300
_TOP, _LANE = 76, 26
_BAR: Final = 0.62
_SIZE: Final = 18
_TONES: Final[dict[Truth, Tone]] = {
    "success": "ok",
    "rollback_success": "blue",
    "committed_when_killed": "muted",
    "visible_error": "warn",
    "silent_loss": "bad",
    "false_verdict": "bad",
    "damaged": "bad",
    "not_killed": "warn",
}
_OF_FORMAT: Final[dict[str, Tone]] = {"delta": "blue", "iceberg": "ok"}
_TIMELINES: Final = tuple(
    f"{cell}-{guard}"
    for one in FORMATS
    for cell, guard in ((f"A-{one}-22k-baseline", "plain"), (f"O-{one}-22k-baseline", "guarded"))
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A named figure, as SVG and PNG."""

    name: str
    title: str
    svg: str
    png: bytes


def figures(records: Sequence[RunRecord], whence: str) -> tuple[Figure, ...]:
    """Return the figures for which there are runs; `whence` names their origin."""
    makers: tuple[tuple[str, str, Callable[[Sequence[RunRecord], str, str], Drawn | None]], ...] = (
        ("outcomes", "How the runs ended, by what readers find", _outcomes),
        ("gap", "The gap between the last data and the commit, by the requests", _gaps),
        ("timeline", "One write by its requests: without a guard, and guarded", _timelines),
        ("verdicts", "The exit code's word, and what readers find", _verdicts),
        ("recovery", "The recovery of a dead guarded write: verdict and clean table", _recovery),
    )
    made = ((name, title, make(records, title, whence)) for name, title, make in makers)
    return tuple(Figure(name, title, svg(drawn), png(drawn)) for name, title, drawn in made if drawn is not None)


def _outcomes(records: Sequence[RunRecord], title: str, whence: str) -> Drawn | None:
    cells = sorted({record.cell for record in records})
    counts = {cell: Counter(record.truth for record in records if record.cell == cell) for cell in cells}
    if not cells:
        return None
    said = (f"{cell}: {', '.join(f'{runs} {truth}' for truth, runs in counts[cell].items())}" for cell in cells)
    drawn = figure(_TOP + len(cells) * _LANE + 44, title, whence, "; ".join(said), size=_SIZE)
    axes = panel(drawn, _TOP, len(cells) * _LANE, cells, left=_LEFT)
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    for number, cell in enumerate(cells):
        total, before = counts[cell].total(), 0.0
        for truth, runs in sorted(counts[cell].items()):
            axes.barh(number, runs / total, _BAR, before, color=COLOURS[_TONES[truth]], alpha=0.85)
            before += runs / total
        axes.text(-0.02, number, cell, ha="right", va="center")
        axes.text(1.015, number, str(total), va="center", size=11, color=COLOURS["muted"])
    seen = [truth for truth in _TONES if any(one[truth] for one in counts.values())]
    legend(drawn, [(truth.replace("_", " "), _TONES[truth], 0.85) for truth in seen])
    return drawn


def _gaps(records: Sequence[RunRecord], title: str, whence: str) -> Drawn | None:
    plain = [one for one in records if one.gap_ms is not None and not one.use_safe_writer and not one.kill_phase]
    of_cells = {
        (one, size): [record.gap_ms or 0.0 for record in plain if (record.table_format, record.dataset) == (one, size)]
        for one in FORMATS
        for size in DATASETS
    }
    found = {cell: gaps for cell, gaps in of_cells.items() if gaps}
    if not found:
        return None
    said = (f"{one}, {size}: median {statistics.median(gaps):.0f} ms" for (one, size), gaps in found.items())
    drawn = figure(_TOP + len(found) * _LANE + 24, title, whence, "; ".join(said), size=_SIZE)
    lanes = (f"{one}, {DATASETS[size]:,} rows" for one, size in found)
    axes = panel(drawn, _TOP, len(found) * _LANE, lanes, left=_LEFT)
    axes.set_xticks([])
    axes.spines.bottom.set_visible(False)
    axes.set_xlim(0, max(max(gaps) for gaps in found.values()))
    for number, ((one, _), gaps) in enumerate(found.items()):
        middle = statistics.median(gaps)
        axes.barh(number, middle, _BAR, color=COLOURS[_OF_FORMAT[one]], alpha=0.85)
        axes.hlines(number, min(gaps), max(gaps), color=COLOURS["ink"], linewidth=1.5)
        axes.text(max(gaps), number, f"  {middle:.0f} ms", size=11, color=COLOURS["muted"], va="center")
    return drawn


def _timelines(records: Sequence[RunRecord], title: str, whence: str) -> Drawn | None:
    shown = [record for cell in _TIMELINES for record in records if record.cell == cell and record.requests][:4]
    writes = [(record.cell, [span for span in record.requests if _writes(span)]) for record in shown]
    writes = [(cell, spans) for cell, spans in writes if spans]
    if not writes:
        return None
    height = _TOP + sum(34 + len(spans) * 18 for _, spans in writes) + 20
    drawn, y = figure(height, title, whence, f"{len(writes)} writes, each PUT with its time", size=_SIZE), _TOP
    for cell, spans in writes:
        drawn.text(24 / WIDTH, 1 - (y + 20) / height, cell, weight="bold")
        lanes = (f"{span.operation} {span.key_class}" for span in spans)
        axes = panel(drawn, y + 28, len(spans) * 18, lanes, left=_LEFT)
        axes.set_xticks([])
        axes.spines.bottom.set_visible(False)
        first = spans[0].began_ms
        axes.set_xlim(0, max(span.ended_ms for span in spans) - first)
        for number, span in enumerate(spans):
            tone: Tone = "ok" if span.key_class in ("delta_log/commit", "iceberg/metadata") else "blue"
            began, long = span.began_ms - first, span.ended_ms - span.began_ms
            # Draw an edge: it shows a request of a millisecond.
            bar = axes.barh(number, long, _BAR, began, color=COLOURS[tone], edgecolor=COLOURS[tone], clip_on=False)
            axes.bar_label(bar, [f"{began + long:.0f} ms"], padding=5, size=10, color=COLOURS["muted"])
        y += 34 + len(spans) * 18
    return drawn


def _verdicts(records: Sequence[RunRecord], title: str, whence: str) -> Drawn | None:
    counts = Counter((record.use_safe_writer, _end(record), record.truth) for record in records)
    ends = sorted({(guarded, phase) for guarded, phase, _ in counts})
    kinds = [truth for truth in _TONES if any(one[2] == truth for one in counts)]
    if not ends:
        return None
    said = "Runs by kill and guard, and by what readers find"
    drawn = figure(_TOP + 20 + len(ends) * 34 + 20, title, whence, said, size=_SIZE)
    lanes = (f"{'guarded' if guarded else 'plain'}, kill: {phase}" for guarded, phase in ends)
    axes = panel(drawn, _TOP + 20, len(ends) * 34, lanes, left=_LEFT)
    axes.spines.bottom.set_visible(False)
    axes.set_xlim(-0.5, len(kinds) - 0.5)
    axes.set_xticks(range(len(kinds)), [truth.replace("_", " ") for truth in kinds], size=11)
    axes.tick_params(axis="x", top=False, labeltop=True, bottom=False, labelbottom=False)
    for number, (guarded, phase) in enumerate(ends):
        runs = [counts[guarded, phase, truth] for truth in kinds]
        for place, (truth, found) in enumerate(zip(kinds, runs, strict=True)):
            shade = 0.06 + 0.8 * found / sum(runs)
            axes.barh(number, 0.98, 0.88, place - 0.49, color=COLOURS[_TONES[truth]], alpha=shade)
            axes.text(place, number, str(found), ha="center", va="center")
    return drawn


def _recovery(records: Sequence[RunRecord], title: str, whence: str) -> Drawn | None:
    killed = [record for record in records if record.killed and record.settle_ms]
    of_formats = {one: [record.settle_ms or 0.0 for record in killed if record.table_format == one] for one in FORMATS}
    times = {one: sorted(found) for one, found in of_formats.items() if found}
    if not times:
        return None
    said = (f"{one}: median {statistics.median(ms):.0f} ms, at most {ms[-1]:.0f} ms" for one, ms in times.items())
    drawn = figure(_TOP + 292, title, whence, "; ".join(said), size=_SIZE)
    axes = panel(drawn, _TOP + 8, 240, ("",), left=_LEFT)
    axes.set_ylim(0, 1)
    axes.set_xlim(0, max(found[-1] for found in times.values()))
    axes.set_yticks(np.linspace(0, 1, 3)[1:])
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.xaxis.set_major_formatter("{x:.0f} ms")
    for number, (one, found) in enumerate(times.items()):
        tone = COLOURS[_OF_FORMAT[one]]
        axes.ecdf(found, color=tone, linewidth=2)
        axes.text(0.75, 0.2 - 0.1 * number, one, color=tone, weight="bold", transform=axes.transAxes)
    return drawn


def _end(record: RunRecord) -> str:
    return record.kill_phase or ("fails" if record.fails else "none")


def _writes(span: Span) -> bool:
    return span.operation.startswith(("Put", "Complete", "Upload", "Create"))
