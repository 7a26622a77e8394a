"""How far a look at a table is, on a terminal only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Counting"]


class Counting:
    """A context manager; `seen` takes the number of objects dealt with so far."""

    def __init__(self, console: Console, what: str) -> None:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TextColumn("{task.completed:,.0f} objects"),
        )
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._progress.add_task(escape(what), total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def says(self, what: str) -> None:
        """Begin another part of the work."""
        self._progress.update(self._task, description=escape(what), completed=0)

    def seen(self, count: int) -> None:
        """Say how many objects are dealt with."""
        self._progress.update(self._task, completed=count)
