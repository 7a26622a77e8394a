"""The life of one guarded write: its S3 requests from top to bottom, and beside each what a kill there would leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.lab.pictures.plot import COLOURS, WIDTH, Tone, bare, count, figure, rows
from tests.lab.pictures.steps import steps_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tests.lab.pictures.facts import Facts, KilledJob, Moment

__all__ = ["write_picture"]

_HEIGHT: Final = 576
_DESCRIPTION: Final = "The S3 requests of one guarded Delta append, and what a kill leaves between them."
_TIME, _BUCKET, _GUARD, _GATE, _TABLE = 64, 150, 322, 416, 598
_LANES: Final = ((_BUCKET, "checkpoint bucket"), (_GUARD, "SafeWriter"), (_GATE, "Delta + gate"), (_TABLE, "table"))
_TOP, _FIRST, _PITCH = 104, 156, 56
_BOX_X, _BOX_END = 638, WIDTH - 20
_LINE: Final = 17


@dataclass(frozen=True, slots=True)
class _Arrow:
    """A row: a request from lane to lane, and its condition."""

    at_ms: int
    start: int
    end: int
    words: str
    below: str
    tone: Tone = "ink"


def write_picture(facts: Facts) -> Figure:
    """Draw the picture."""
    arrows = _arrows(facts)
    note = (
        f"A job appends {rows(facts.batch_rows)} to a Delta table: {len(facts.write.requests)} S3 requests in"
        f" {arrows[-1].at_ms / 1000:.1f} s. These make it safe:"
    )
    drawn = figure(_HEIGHT, "One guarded write, request by request", note, _DESCRIPTION)
    page = bare(drawn)
    page.text(_TIME, _TOP, "ms", color=COLOURS["muted"], ha="right")
    for x, name in _LANES:
        page.text(x, _TOP, name, size=13, ha="center", weight="bold")
        page.plot((x, x), (_TOP + 10, _y(6) + 30), color=COLOURS["muted"], linewidth=1, linestyle=(0, (2, 3)))
    for number, arrow in enumerate(arrows):
        _arrow(page, arrow, _y(number))
    for words, below in (("gate: is it", -4), ("still ours?", 9)):
        page.text((_GUARD + _GATE) / 2, _y(3) + below, words, size=11, color=COLOURS["ok"], ha="center")
    page.barh(_y(3), 8, 28, _GATE - 4, color=COLOURS["ok"])
    _kills(page, facts)
    page.text(24, _HEIGHT - 18, facts.origin, size=10, color=COLOURS["muted"])
    return drawn


def _arrows(facts: Facts) -> tuple[_Arrow, ...]:
    steps = steps_of(facts.write)
    name = f"…{steps.commit.key.rpartition('/')[2][-7:]}"
    size = sum(one.body_bytes for one in steps.data) / 1024
    data = f"PUT {count(len(steps.data), 'data file')}, {size:,.0f} KiB"
    return (
        _Arrow(steps.marker.at_ms, _GUARD, _BUCKET, "PUT marker", "announces the write", "blue"),
        _Arrow(steps.claim.at_ms, _GUARD, _BUCKET, "PUT claim: in_progress", _condition(steps.claim.condition), "blue"),
        _Arrow(steps.data[0].at_ms, _GATE, _TABLE, data, "in no version yet"),
        _Arrow(steps.commit.at_ms, _GATE, _TABLE, f"PUT commit {name}", _condition(steps.commit.condition), "ok"),
        _Arrow(steps.read_back.at_ms, _TABLE, _GUARD, f"GET {name}", "read back: is it ours?"),
        _Arrow(
            steps.verdict.at_ms, _GUARD, _BUCKET, "PUT verdict: committed", _condition(steps.verdict.condition), "blue"
        ),
        _Arrow(steps.removal.at_ms, _GUARD, _BUCKET, "DELETE marker", "nothing is left to settle", "blue"),
    )


def _condition(condition: str | None) -> str:
    """Return the condition without the ETag, which is meaningless to a reader."""
    return "If-Match: its ETag" if (condition or "").startswith("If-Match") else condition or ""


def _arrow(page: Axes, arrow: _Arrow, y: float) -> None:
    page.text(_TIME, y + 4, f"{arrow.at_ms:,}", color=COLOURS["muted"], ha="right")
    is_commit = arrow.tone == "ok"
    start, end = sorted((arrow.start, arrow.end))
    # The read-back crosses the gate's lane, so its text is in the last gap.
    middle = (max(start, _GATE) + end) / 2 if end == _TABLE else (start + end) / 2
    look = {"arrowstyle": "-|>", "color": COLOURS[arrow.tone], "lw": 3 if is_commit else 1.5}
    page.annotate("", (arrow.end, y), (arrow.start, y), arrowprops={**look, "shrinkA": 0, "shrinkB": 0})
    page.text(middle, y - 7, arrow.words, size=12, ha="center", weight="bold" if is_commit else "normal")
    page.text(middle, y + 15, arrow.below, size=11, color=COLOURS["muted"], ha="center")


def _kills(page: Axes, facts: Facts) -> None:
    page.text(_BOX_X + 18, _TOP, "killed here, then retried", size=13, weight="bold")
    crosses: list[tuple[float, float]] = [(_BOX_X + 5, _TOP - 5)]
    zones: tuple[tuple[Moment, float, float, float, Tone], ...] = (
        ("marked", _y(0), _y(1), _y(1), "muted"),
        ("written", _y(1), _y(3), _y(3), "warn"),
        ("landed", _y(3), _y(5), _y(3), "ok"),
        ("settled", _y(5), _y(6) + 30, _y(5), "ok"),
    )
    for moment, top, bottom, killed_y, tone in zones:
        begins = _TABLE if top == _y(3) else _GUARD
        page.plot((begins, _BOX_X), (top, top), color=COLOURS["muted"], linewidth=0.5, linestyle=(0, (1, 4)))
        middle, height = (top + bottom) / 2, bottom - top - 4
        page.barh(middle, _BOX_END - _BOX_X, height, _BOX_X, color=COLOURS[tone], alpha=0.12)
        page.barh(middle, 4, height, _BOX_X, color=COLOURS[tone])
        crosses.append((_BOX_X + 2, killed_y + (-12 if killed_y == bottom else 12)))
        lines = _lines(facts.kill(moment, is_guarded=True), moment)
        first = middle - (len(lines) - 1) * _LINE / 2 + 4
        for number, line in enumerate(lines):
            weight = "normal" if number else "bold"
            page.text(_BOX_X + 16, first + number * _LINE, line, size=11.5, weight=weight)
    xs, ys = zip(*crosses, strict=True)
    page.scatter(xs, ys, marker="x", s=90, linewidths=2.5, color=COLOURS["bad"], zorder=3)


def _lines(kill: KilledJob, moment: Moment) -> tuple[str, ...]:
    killed, retried = rows(kill.killed.rows), rows(kill.retried.rows)
    checkpoint = f"checkpoint: {kill.killed.status}"
    match moment:
        case "marked":
            return f"{killed}, no new file", f"retry writes: {retried}"
        case "written":
            orphans = count(kill.killed.orphans, "orphan file")
            return f"{killed}, {orphans}", checkpoint, "retry rolls back, deletes orphans,", f"writes: {retried}"
        case "landed":
            return killed, checkpoint, "retry finds the commit, skips:", retried
        case "settled":
            return killed, checkpoint, f"retry skips: {retried}"


def _y(number: int) -> float:
    return _FIRST + number * _PITCH
