"""The timeline of both groups: a lane for each job, a bar for each batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.lab.pictures.plot import COLOURS, WIDTH, Tone, count, figure, legend, panel, seconds
from tests.lab.turns.events import TurnEvent
from tests.lab.turns.workload import JOBS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tests.lab.turns.events import Group, Window
    from tests.lab.turns.verdict import Verdict

__all__ = ["timeline"]

_HEIGHT: Final = 412
_TOPS: Final[dict[Group, int]] = {"without": 98, "with": 244}
_TITLE: Final = "Three streams on one Delta table, without and with turns"
_NOTE: Final = (
    "A Spark driver for each stream. The group without turns ran first, in cold JVMs: compare the overlaps,"
    " not the times."
)
_BAR: Final = 0.66
_LEGEND: Final[tuple[tuple[str, Tone, float], ...]] = (
    ("batch landed", "ok", 0.85),
    ("batch lost a conflict, and is delivered again", "bad", 0.85),
    ("requests kept whose rows are not there yet", "warn", 1),
    ("turn, until the stream has recorded the batch", "blue", 0.25),
)


def timeline(events: Sequence[Window | TurnEvent], verdicts: Mapping[Group, Verdict]) -> Figure:
    """Draw the timeline. Both groups have the same scale, and begin at its left end."""
    drawn = figure(_HEIGHT, _TITLE, _NOTE, " ".join(map(_words, verdicts.values())))
    begins = {group: min(one.began_ms for one in events if one.group == group) for group in verdicts}
    longest_ms = max(one.ended_ms - begins[one.group] for one in events)
    for group, verdict in verdicts.items():
        drawn.text(24 / WIDTH, 1 - (_TOPS[group] - 10) / _HEIGHT, _words(verdict), size=13)
        axes = panel(drawn, _TOPS[group], 90, JOBS, left=110, right=WIDTH - 24)
        seconds(axes, longest_ms / 1000)
        for one in events:
            if one.group == group:
                _bar(axes, one, (one.began_ms - begins[group]) / 1000)
    legend(drawn, _LEGEND)
    return drawn


def _bar(axes: Axes, one: Window | TurnEvent, began_s: float) -> None:
    lane, long_s = JOBS.index(one.job), (one.ended_ms - one.began_ms) / 1000
    if isinstance(one, TurnEvent):
        axes.barh(lane, long_s, _BAR + 0.2, began_s, color=COLOURS["blue"], alpha=0.25)
        return
    axes.barh(lane, long_s, _BAR, began_s, color=COLOURS["ok" if one.outcome == "landed" else "bad"], alpha=0.85)
    if one.kept:
        axes.barh(lane + _BAR / 2 - 0.07, long_s, 0.14, began_s, color=COLOURS["warn"])


def _words(verdict: Verdict) -> str:
    met = f"{count(verdict.overlaps, 'overlap')}, {count(verdict.conflicts, 'conflict')}"
    if verdict.group == "without":
        return f"Without the coordinator: {met} in {verdict.windows} runs of {verdict.landed} batches."
    order = "each batch in its turn" if verdict.in_order else "NOT in the declared order"
    lost = "no row lost or doubled" if verdict.is_exact else f"{verdict.lost} rows lost, {verdict.doubled} doubled"
    return f"With it: {met}, {order}: Ingestion, Mutation, TTL; {lost}."
