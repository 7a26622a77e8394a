"""The same append with and without the guard, killed at two moments, and retried: the table's content each time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.lab.pictures.plot import COLOURS, WIDTH, Tone, bare, count, figure, panel, rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tests.lab.pictures.facts import Facts, KilledJob, Moment, SeenTable

__all__ = ["kill_picture"]

_HEIGHT: Final = 580
_TITLE: Final = "The same job killed and retried, without and with the guard"
_DESCRIPTION: Final = (
    "Rows and orphan files of a Delta table after each process of the job was killed, and after the retry."
)
_LEFT, _RIGHT, _CELL = 24, 468, 408
_BAR_X, _BAR_MAX = 104, 140
_MOMENTS: Final[tuple[tuple[Moment, int, str], ...]] = (
    ("written", 134, "Killed before the commit: the data is on S3, but not in the table"),
    ("landed", 336, "Killed after the commit, before its answer: the rows are in the table"),
)
_STATES: Final = ("before", "after the kill", "after the retry")


def kill_picture(facts: Facts) -> Figure:
    """Draw the picture."""
    before = facts.kill("written", is_guarded=True).before.rows
    right = before + facts.batch_rows
    note = (
        f"A batch of {rows(facts.batch_rows)} for a table of {before:,}."
        f" Right is {right:,} (dashed). An orphan is a data file that no version names."
    )
    drawn = figure(_HEIGHT, _TITLE, note, _DESCRIPTION)
    page = bare(drawn)
    guards: tuple[tuple[int, Tone, str, str], ...] = (
        (_LEFT, "bad", "Without the guard", "Nothing records which it was: a retry is a guess."),
        (_RIGHT, "ok", "With SafeWriter", f"The retry reads which it was: {right:,} both times."),
    )
    for x, tone, name, conclusion in guards:
        page.text(x, 96, name, size=15, color=COLOURS[tone], weight="bold")
        page.plot((x, x + _CELL), (106, 106), color=COLOURS[tone], linewidth=2)
        page.text(x, _HEIGHT - 46, conclusion, size=13, color=COLOURS[tone], weight="bold")
    for moment, y, words in _MOMENTS:
        page.barh(y - 5, WIDTH - 2 * _LEFT, 26, _LEFT, color=COLOURS["muted"], alpha=0.12)
        page.text(_LEFT + 10, y, words, size=13, weight="bold")
        for x, is_guarded in ((_LEFT, False), (_RIGHT, True)):
            _cell(drawn, facts, facts.kill(moment, is_guarded=is_guarded), x, y + 14)
    page.text(_LEFT, _HEIGHT - 18, facts.origin, size=10, color=COLOURS["muted"])
    return drawn


def _cell(drawn: Figure, facts: Facts, kill: KilledJob, x: float, y: float) -> None:
    right = kill.before.rows + facts.batch_rows
    states = (kill.before, kill.killed, kill.retried)
    tones: tuple[Tone, ...] = ("muted", "blue", _tone(kill.retried, right))
    axes = panel(drawn, y, 126, _STATES, left=x + _BAR_X, right=x + _BAR_X + _BAR_MAX)
    axes.set_xlim(0, max(one.retried.rows for one in facts.kills))
    axes.spines.bottom.set_visible(False)
    axes.set_xticks([])
    axes.barh(range(3), [one.rows for one in states], 0.52, color=[COLOURS[tone] for tone in tones], alpha=0.75)
    axes.axvline(right, color=COLOURS["ink"], linewidth=1.5, linestyle=(0, (4, 3)))
    notes = bare(drawn, left=x + 256, top=y, right=x + _CELL, height=126)
    for number, state in enumerate(states):
        middle = 21 + 42 * number
        notes.text(0, middle + (4 if not number else -1), rows(state.rows), size=12.5, weight="bold")
        if number:
            notes.text(0, middle + 13, _marks(state), size=11, color=COLOURS["bad" if state.orphans else "muted"])
    verdict = bare(drawn, left=x, top=y + 126, right=x + _CELL, height=24)
    verdict.text(0, 12, _verdict(kill, facts), size=12, color=COLOURS[tones[-1]], weight="bold")


def _tone(state: SeenTable, right: int) -> Tone:
    """Choose the tone: right, untidy or wrong."""
    if state.rows != right:
        return "bad"
    return "warn" if state.orphans else "ok"


def _marks(state: SeenTable) -> str:
    return ", ".join([count(state.orphans, "orphan"), *([state.status] if state.status else [])])


def _verdict(kill: KilledJob, facts: Facts) -> str:
    """Describe a cell by its numbers."""
    lost = kill.before.rows + facts.batch_rows - kill.killed.rows
    doubled = kill.retried.rows - kill.before.rows - facts.batch_rows
    if kill.is_guarded:
        return "The retry rolls back, cleans up, and writes." if lost else "The retry finds the commit, and skips."
    if doubled:
        return f"No retry: right. Retry: {rows(doubled)} doubled."
    return f"No retry: {rows(lost)} lost. Retry: {count(kill.retried.orphans, 'orphan')} left."
