"""The progress of a command, on a terminal only: its current work, the elapsed time, and how much is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TextIO

from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from handler.process.log import is_java_frame
from handler.redaction.log_records import JOB
from safewriter.parsing import parsed
from soal.console.visible import visible

if TYPE_CHECKING:
    from rich.console import Console


class _Spinner:
    """A context manager that shows a spinner; `last` is the format of the last column."""

    def __init__(self, console: Console, text: str, last: str) -> None:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), TextColumn(last))
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._progress.add_task(escape(text), total=None, last="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


class JobProgress(_Spinner):
    """A running job; `line` takes each line of the function's log, from any thread.

    `log`: a file that gets the whole log. The console then leaves out the frames of Java's stacks, and the handler's
    own lines, which the result repeats.
    """

    def __init__(self, console: Console, text: str, *, shows_log: bool = False, log: TextIO | None = None) -> None:
        super().__init__(console, text, "{task.fields[last]}")
        self._console = console
        self._shows_log = shows_log
        self._log = log

    def line(self, raw: str) -> None:
        """Show a line of the log, unless it is a metric or the emulator's."""
        text = log_text(raw)
        if text is None:
            return
        if self._log is not None:
            self._log.write(f"{visible(text)}\n")
        if self._shows_log and (self._log is None or not _is_left_out(raw, text)):
            print_line(self._console, text)
        width = max(20, self._console.width - 45)
        self._progress.update(self._task, last=escape(text[:width]))

    def says(self, text: str) -> None:
        """Show the job's state."""
        self._progress.update(self._task, last=escape(text))


class Counting(_Spinner):
    """Work of unknown length, counted in `unit`."""

    def __init__(self, console: Console, text: str, *, unit: str = "objects") -> None:
        super().__init__(console, text, f"{{task.completed:,.0f}} {unit}")

    def says(self, text: str) -> None:
        """Start the next part of the work, and count from 0."""
        self._progress.update(self._task, description=escape(text), completed=0)

    def show(self, count: int) -> None:
        """Show how many objects have been processed so far."""
        self._progress.update(self._task, completed=count)


def print_line(console: Console, text: str) -> None:
    """Print another program's lines with a prefix, so that none looks like output of this command."""
    for line in text.splitlines():
        console.print(Text(f"| {line}"), style="dim", highlight=False, soft_wrap=True)


def _entry(raw: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return an entry of the function's log; None for a line that is no JSON."""
    try:
        return parsed(raw) if raw.startswith("{") else None
    except ValueError:
        return None


def _is_left_out(raw: str, text: str) -> bool:
    entry = _entry(raw)
    is_of_handler = entry is not None and entry.get("source") != JOB
    return is_of_handler or is_java_frame(text.encode(errors="replace"))


def log_text(raw: str) -> str | None:
    """Return the text of a line of the function's log; None for metrics and the emulator's lines."""
    if (entry := _entry(raw)) is not None:
        return str(entry["message"]) if isinstance(entry, dict) and "message" in entry else None
    is_of_emulator = "(rapid)" in raw or raw.startswith(("START RequestId", "END RequestId", "REPORT RequestId"))
    return None if is_of_emulator or not raw.strip() else raw
