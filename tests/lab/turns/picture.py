"""The timeline of both groups: a lane for each job, a bar for each batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from tests.lab.pictures.svg import WIDTH, Anchor, Canvas, Tone
from tests.lab.pictures.words import count
from tests.lab.turns.events import Group, TurnEvent, Window
from tests.lab.turns.workload import JOBS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.lab.turns.verdict import Verdict

__all__ = ["HEIGHT", "Drawing", "draw", "timeline"]

HEIGHT: Final = 400
_LEFT, _RIGHT = 110, WIDTH - 24
_TOPS: Final[dict[Group, int]] = {"without": 98, "with": 244}
_LANE, _BAR = 30, 20
_TITLE: Final = "Three streams on one Delta table, without and with turns"
_NOTE: Final = (
    "A Spark driver for each stream. The group without turns ran first, in cold Java machines: compare the overlaps,"
    " not the times."
)
_STEPS_S: Final = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600)
_TICKS_MAX: Final = 12


class Drawing(Protocol):
    """What a timeline is drawn on."""

    def text(
        self,
        words: str,
        x: float,
        y: float,
        *,
        size: float = 12,
        tone: Tone = "ink",
        anchor: Anchor = "start",
        bold: bool = False,
    ) -> None:
        """Write one line; `y` is its base line."""
        ...

    def box(self, x: float, y: float, width: float, height: float, *, tone: Tone, opacity: float = 1) -> None:
        """Fill a rectangle."""
        ...

    def line(self, start: tuple[float, float], end: tuple[float, float], *, tone: Tone, width: float = 1) -> None:
        """Draw a straight line."""
        ...


def timeline(events: Sequence[Window | TurnEvent], verdicts: Mapping[Group, Verdict]) -> str:
    """Return it as SVG."""
    canvas = Canvas(HEIGHT, _TITLE, " ".join(_words(verdict) for verdict in verdicts.values()))
    draw(canvas, events, verdicts)
    return canvas.document()


def draw(drawing: Drawing, events: Sequence[Window | TurnEvent], verdicts: Mapping[Group, Verdict]) -> None:
    """Draw it. Both groups have the same scale, and begin at its left end."""
    drawing.text(_TITLE, 24, 36, size=20, bold=True)
    drawing.text(_NOTE, 24, 56, size=12, tone="muted")
    begins = {group: min(one.began_ms for one in events if one.group == group) for group in verdicts}
    longest_ms = max(one.ended_ms - begins[one.group] for one in events)
    scale = (_RIGHT - _LEFT) / longest_ms
    for group, verdict in verdicts.items():
        top = _TOPS[group]
        drawing.text(_words(verdict), 24, top - 10, size=13)
        for number, job in enumerate(JOBS):
            drawing.text(job, _LEFT - 10, top + number * _LANE + _LANE / 2 + 4, anchor="end")
        _axis(drawing, top, longest_ms, scale)
        for one in events:
            if one.group == group:
                x = _LEFT + (one.began_ms - begins[group]) * scale
                _bar(drawing, one, x, (one.ended_ms - one.began_ms) * scale, top)
    _legend(drawing)


def _bar(drawing: Drawing, one: Window | TurnEvent, x: float, width: float, top: int) -> None:
    y = top + JOBS.index(one.job) * _LANE + (_LANE - _BAR) / 2
    if isinstance(one, TurnEvent):
        drawing.box(x, y - 3, max(width, 1), _BAR + 6, tone="blue", opacity=0.25)
        return
    tone: Tone = "ok" if one.outcome == "landed" else "bad"
    drawing.box(x, y, max(width, 1), _BAR, tone=tone, opacity=0.85)
    if one.kept:
        drawing.box(x, y + _BAR - 4, max(width, 1), 4, tone="warn")


def _axis(drawing: Drawing, top: int, longest_ms: int, scale: float) -> None:
    y = top + len(JOBS) * _LANE + 4
    drawing.line((_LEFT, y), (_RIGHT, y), tone="muted")
    step_s = next((one for one in _STEPS_S if longest_ms / 1000 / one <= _TICKS_MAX), _STEPS_S[-1])
    for second in range(0, longest_ms // 1000 + 1, step_s):
        x = _LEFT + second * 1000 * scale
        drawing.line((x, y), (x, y + 4), tone="muted")
        drawing.text(f"{second} s", x, y + 16, size=10.5, tone="muted", anchor="middle")


def _legend(drawing: Drawing) -> None:
    x, y = 24.0, HEIGHT - 18
    entries: tuple[tuple[Tone, float, str], ...] = (
        ("ok", 0.85, "batch landed"),
        ("bad", 0.85, "batch lost a conflict, and is delivered again"),
        ("warn", 1, "requests kept whose rows are not there yet"),
        ("blue", 0.25, "turn, until the stream has recorded the batch"),
    )
    for tone, opacity, words in entries:
        drawing.box(x, y - 9, 10, 10, tone=tone, opacity=opacity)
        drawing.text(words, x + 15, y, size=10.5, tone="muted")
        x += 30 + len(words) * 5.3


def _words(verdict: Verdict) -> str:
    met = f"{count(verdict.overlaps, 'overlap')}, {count(verdict.conflicts, 'conflict')}"
    if verdict.group == "without":
        return f"Without the coordinator: {met} in {verdict.windows} runs of {verdict.landed} batches."
    order = "each batch in its turn" if verdict.in_order else "NOT in the declared order"
    lost = "no row lost or doubled" if verdict.is_exact else f"{verdict.lost} rows lost, {verdict.doubled} doubled"
    return f"With it: {met}, {order}: Ingestion, Mutation, TTL; {lost}."
