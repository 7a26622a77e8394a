"""The data that a command shows, in two forms at once: a JSON value for a program, parts for a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from datetime import datetime

    from rich.console import RenderableType

_STYLES: Final = {
    "SUCCESS": "green",
    "committed": "green",
    "ok": "green",
    "UNKNOWN": "bold red",
    "unknown": "bold red",
    "FAILED": "red",
    "fail": "red",
    "TIMED_OUT": "yellow",
    "INCOMPLETE": "yellow",
    "CANCELLED": "yellow",
    "SKIPPED": "yellow",
    "RUNNING": "cyan",
    "in_progress": "cyan",
    "rolling_back": "yellow",
    "rolled_back": "yellow",
    "warn": "yellow",
    "sent": "green",
    "left": "yellow",
    "failed": "red",
    "completed": "green",
    "nothing": "green",
    "expired": "yellow",
    "forced": "yellow",
}


@dataclass(frozen=True, slots=True)
class View:
    """`document` is any JSON value. `parts` are printed one below the other; a `Text` is never folded."""

    document: Any
    parts: tuple[RenderableType, ...] = ()


def styled(word: str) -> Text:
    """Return a state, a verdict or a finding's status in its colour."""
    return Text(word, style=_STYLES.get(word, ""))


def columns(*names: str, right: tuple[str, ...] = ()) -> Table:
    """Make an empty table; the columns in `right` hold numbers."""
    table = Table(box=None, header_style="dim")
    for name in names:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return table


def number(value: int | None) -> str:
    """Return a number with separators, nothing for None."""
    return "" if value is None else f"{value:,}"


def moment(at: datetime) -> str:
    """Return a moment of UTC to the second."""
    return at.strftime("%Y-%m-%d %H:%M:%SZ")
