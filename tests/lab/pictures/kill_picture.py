"""The same append with and without the guard, killed at two moments, and retried: the table's content each time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.lab.pictures.svg import WIDTH, Canvas, Tone
from tests.lab.pictures.words import count, origin, rows

if TYPE_CHECKING:
    from tests.lab.pictures.facts import Facts, KilledJob, Moment, SeenTable

__all__ = ["kill_picture"]

_HEIGHT: Final = 580
_LEFT, _RIGHT, _CELL = 24, 468, 408
_BAR_X, _BAR_MAX, _NOTE_X = 104, 140, 256
_PITCH, _BAR = 42, 22
_MOMENTS: Final[tuple[tuple[Moment, int, str], ...]] = (
    ("written", 134, "Killed before the commit: the data is on S3, but not in the table"),
    ("landed", 336, "Killed after the commit, before its answer: the rows are in the table"),
)


def kill_picture(facts: Facts) -> str:
    """Draw it, as SVG."""
    title = "The same job killed and retried, without and with the guard"
    canvas = Canvas(
        _HEIGHT,
        title,
        "Rows and orphan files of a Delta table after each process of the job was killed, and after the retry.",
    )
    before = facts.kill("written", is_guarded=True).before.rows
    right = before + facts.batch_rows
    canvas.text(title, _LEFT, 36, size=20, bold=True)
    canvas.text(
        f"A batch of {rows(facts.batch_rows)} for a table of {before:,}."
        f" Right is {right:,} (dashed). An orphan is a data file that no version names.",
        _LEFT,
        60,
        size=13,
        tone="muted",
    )
    canvas.text("Without the guard", _LEFT, 96, size=15, tone="bad", bold=True)
    canvas.text("With SafeWriter", _RIGHT, 96, size=15, tone="ok", bold=True)
    canvas.line((_LEFT, 106), (_LEFT + _CELL, 106), tone="bad", width=2)
    canvas.line((_RIGHT, 106), (_RIGHT + _CELL, 106), tone="ok", width=2)
    for moment, y, words in _MOMENTS:
        canvas.box(_LEFT, y - 18, WIDTH - 2 * _LEFT, 26, tone="muted", opacity=0.12)
        canvas.text(words, _LEFT + 10, y, size=13, bold=True)
        for x, is_guarded in ((_LEFT, False), (_RIGHT, True)):
            _cell(canvas, facts, facts.kill(moment, is_guarded=is_guarded), x, y + 20)
    _conclusions(canvas, right)
    canvas.text(origin(facts), _LEFT, _HEIGHT - 18, size=10.5, tone="muted")
    return canvas.document()


def _cell(canvas: Canvas, facts: Facts, kill: KilledJob, x: float, y: float) -> None:
    right = kill.before.rows + facts.batch_rows
    most = max(one.retried.rows for one in facts.kills)
    states: tuple[tuple[str, SeenTable, Tone], ...] = (
        ("before", kill.before, "muted"),
        ("after the kill", kill.killed, "blue"),
        ("after the retry", kill.retried, _tone(kill.retried, right)),
    )
    for number, (name, state, tone) in enumerate(states):
        top = y + number * _PITCH
        middle = top + _BAR / 2
        canvas.text(name, x, middle + 4, size=12)
        canvas.box(x + _BAR_X, top, _BAR_MAX * state.rows / most, _BAR, tone=tone, opacity=0.75)
        is_first = not number
        canvas.text(rows(state.rows), x + _NOTE_X, middle + (4 if is_first else -1), size=12.5, bold=True)
        if not is_first:
            canvas.text(_marks(state), x + _NOTE_X, middle + 13, size=11, tone="bad" if state.orphans else "muted")
    edge = x + _BAR_X + _BAR_MAX * right / most
    canvas.line((edge, y - 4), (edge, y + 2 * _PITCH + _BAR + 4), tone="ink", width=1.5, dashes="4 3")
    canvas.text(_verdict(kill, facts), x, y + 3 * _PITCH + 6, size=12.5, tone=_tone(kill.retried, right), bold=True)


def _tone(state: SeenTable, right: int) -> Tone:
    """Tell right from untidy from wrong."""
    if state.rows != right:
        return "bad"
    return "warn" if state.orphans else "ok"


def _marks(state: SeenTable) -> str:
    return ", ".join([count(state.orphans, "orphan"), *([state.status] if state.status else [])])


def _verdict(kill: KilledJob, facts: Facts) -> str:
    """Describe a cell from its numbers."""
    lost = kill.before.rows + facts.batch_rows - kill.killed.rows
    doubled = kill.retried.rows - kill.before.rows - facts.batch_rows
    if kill.is_guarded:
        return "The retry rolls back, cleans up, and writes." if lost else "The retry finds the commit, and skips."
    if doubled:
        return f"No retry: right. Retry: {rows(doubled)} doubled."
    return f"No retry: {rows(lost)} lost. Retry: {count(kill.retried.orphans, 'orphan')} left."


def _conclusions(canvas: Canvas, right: int) -> None:
    y = _HEIGHT - 46
    canvas.text("Nothing records which it was: a retry is a guess.", _LEFT, y, size=13.5, tone="bad", bold=True)
    canvas.text(f"The retry reads which it was: {right:,} both times.", _RIGHT, y, size=13.5, tone="ok", bold=True)
