"""The data that a command prints, in two forms: a JSON value for programs, parts for people."""

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
    """`document` is any JSON value. `parts` are printed below one another; a `Text` is never wrapped."""

    document: Any
    parts: tuple[RenderableType, ...] = ()


def styled(word: str) -> Text:
    """Return a state, a verdict or a finding's status in its colour."""
    return Text(word, style=_STYLES.get(word, ""))


def columns(*names: str, right: tuple[str, ...] = ()) -> Table:
    """Return an empty table; the columns in `right` are right-aligned."""
    table = Table(box=None, header_style="dim")
    for name in names:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return table


def number(value: int | None) -> str:
    """Return a number with thousands separators, or an empty string for None."""
    return "" if value is None else f"{value:,}"


def moment(at: datetime) -> str:
    """Return a time in UTC, to the second."""
    return at.strftime("%Y-%m-%d %H:%M:%SZ")
