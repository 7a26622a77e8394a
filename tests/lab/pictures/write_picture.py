"""The life of one guarded write: its S3 requests from top to bottom, and beside them the remains of a kill there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.lab.pictures.steps import steps_of
from tests.lab.pictures.svg import WIDTH, Canvas, Tone
from tests.lab.pictures.words import count, origin, rows

if TYPE_CHECKING:
    from tests.lab.pictures.facts import Facts, KilledJob, Moment

__all__ = ["write_picture"]

_HEIGHT: Final = 576
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


def write_picture(facts: Facts) -> str:
    """Draw it, as SVG."""
    arrows = _arrows(facts)
    seconds = arrows[-1].at_ms / 1000
    title = "One guarded write, request by request"
    canvas = Canvas(_HEIGHT, title, "The S3 requests of one guarded Delta append, and what a kill leaves between them.")
    canvas.text(title, 24, 36, size=20, bold=True)
    canvas.text(
        f"A job appends {rows(facts.batch_rows)} to a Delta table: {len(facts.write.requests)} S3 requests in"
        f" {seconds:.1f} s. These make it safe:",
        24,
        60,
        size=13,
        tone="muted",
    )
    _lanes(canvas)
    for number, arrow in enumerate(arrows):
        _arrow(canvas, arrow, _y(number))
    canvas.text("gate: is it", (_GUARD + _GATE) / 2, _y(3) - 4, size=11, tone="ok", anchor="middle")
    canvas.text("still ours?", (_GUARD + _GATE) / 2, _y(3) + 9, size=11, tone="ok", anchor="middle")
    canvas.box(_GATE - 4, _y(3) - 14, 8, 28, tone="ok")
    _kills(canvas, facts)
    canvas.text(origin(facts), 24, _HEIGHT - 18, size=10.5, tone="muted")
    return canvas.document()


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
    """Return it without the ETag, which says nothing to a reader."""
    return "If-Match: its ETag" if (condition or "").startswith("If-Match") else condition or ""


def _lanes(canvas: Canvas) -> None:
    canvas.text("ms", _TIME, _TOP, size=12, tone="muted", anchor="end")
    for x, name in _LANES:
        canvas.text(name, x, _TOP, size=13, anchor="middle", bold=True)
        canvas.line((x, _TOP + 10), (x, _y(6) + 30), tone="muted", width=1, dashes="2 3")


def _arrow(canvas: Canvas, arrow: _Arrow, y: float) -> None:
    canvas.text(f"{arrow.at_ms:,}", _TIME, y + 4, size=12, tone="muted", anchor="end")
    is_commit = arrow.tone == "ok"
    start, end = sorted((arrow.start, arrow.end))
    # The read-back crosses the gate's lane: its words stand in the last gap.
    middle = (max(start, _GATE) + end) / 2 if end == _TABLE else (start + end) / 2
    canvas.arrow(arrow.start, arrow.end, y, tone=arrow.tone, width=3 if is_commit else 1.5)
    canvas.text(arrow.words, middle, y - 7, size=12.5, anchor="middle", bold=is_commit)
    canvas.text(arrow.below, middle, y + 15, size=11, tone="muted", anchor="middle")


def _kills(canvas: Canvas, facts: Facts) -> None:
    canvas.cross(_BOX_X + 5, _TOP - 5, tone="bad")
    canvas.text("killed here, then retried", _BOX_X + 18, _TOP, size=13, bold=True)
    zones: tuple[tuple[Moment, float, float, float, Tone], ...] = (
        ("marked", _y(0), _y(1), _y(1), "muted"),
        ("written", _y(1), _y(3), _y(3), "warn"),
        ("landed", _y(3), _y(5), _y(3), "ok"),
        ("settled", _y(5), _y(6) + 30, _y(5), "ok"),
    )
    for moment, top, bottom, killed_y, tone in zones:
        canvas.line((_TABLE if top == _y(3) else _GUARD, top), (_BOX_X, top), tone="muted", width=0.5, dashes="1 4")
        canvas.box(_BOX_X, top + 2, _BOX_END - _BOX_X, bottom - top - 4, tone=tone, opacity=0.12)
        canvas.box(_BOX_X, top + 2, 4, bottom - top - 4, tone=tone)
        canvas.cross(_BOX_X + 2, killed_y + (-12 if killed_y == bottom else 12), tone="bad")
        lines = _lines(facts.kill(moment, is_guarded=True), moment)
        y = (top + bottom) / 2 - (len(lines) - 1) * _LINE / 2 + 4
        for number, line in enumerate(lines):
            canvas.text(line, _BOX_X + 16, y + number * _LINE, size=12, bold=not number)


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
