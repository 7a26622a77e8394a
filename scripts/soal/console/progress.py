"""What a person sees while a job runs: the time that has passed, and the last line of the log. On a terminal only."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from safewriter.parsing import parsed

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["JobProgress", "log_text"]


class JobProgress:
    """A context manager; `line` takes each line of the function's log, from any thread."""

    def __init__(self, console: Console, what: str, *, shows_log: bool = False) -> None:
        self._console = console
        self._shows_log = shows_log
        self._started = time.monotonic()
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[last]}"),
        )
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._progress.add_task(what, total=None, last="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def line(self, raw: str) -> None:
        """Show a line of the log, if it is one that a person wants to see."""
        text = log_text(raw)
        if text is None:
            return
        if self._shows_log:
            self._console.print(Text(text), style="dim", highlight=False, soft_wrap=True)
        width = max(20, self._console.width - 45)
        self._progress.update(self._task, last=Text(text[:width], style="dim").plain.replace("[", r"\["))


def log_text(raw: str) -> str | None:
    """Return what a line of the function's log says, None for metrics and the emulator's own lines."""
    if raw.startswith("{"):
        try:
            entry = parsed(raw)
        except ValueError:
            return raw
        return str(entry["message"]) if isinstance(entry, dict) and "message" in entry else None
    is_of_emulator = "(rapid)" in raw or raw.startswith(("START RequestId", "END RequestId", "REPORT RequestId"))
    return None if is_of_emulator or not raw.strip() else raw
