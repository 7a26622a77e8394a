"""Runs and writes as a person reads them."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from handler.functions.failure_queue import Redriven
    from scripts.soal.recover.recoverer import Recovered
    from scripts.soal.runs.ledger import RunView, WriteView
    from scripts.soal.runs.watching import Event

__all__ = ["event_line", "recovered_table", "redriven_table", "run_table", "writes_table"]

_LIVES = {"alive": "green", "dead": "bold red"}


def run_table(runs: Sequence[RunView], styled: Callable[[str], Text]) -> Table:
    """Return one row for each run."""
    table = Table(box=None, header_style="dim")
    for name in ("run", "state", "live or dead", "attempt", "began", "writes"):
        table.add_column(name, justify="right" if name == "attempt" else "left", overflow="fold")
    for run in runs:
        counts = Counter(write.status for write in run.writes)
        writes = Text(", ").join(Text.assemble(f"{count} ", styled(status)) for status, count in sorted(counts.items()))
        table.add_row(
            Text(run.run_key),
            styled(run.state or "-"),
            _life(run.life, run.why),
            "" if run.attempt is None else str(run.attempt),
            _time(run.started_ms),
            writes,
        )
    return table


def writes_table(writes: Sequence[WriteView], styled: Callable[[str], Text]) -> Table:
    """Return one row for each write of a run."""
    table = Table(box=None, header_style="dim")
    for name in ("write", "step", "verdict", "version", "rows", "attempts", "live or dead", "reason"):
        right = name in ("version", "rows", "attempts")
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for write in writes:
        numbers = ["" if number is None else f"{number:,}" for number in (write.version, write.rows, write.attempts)]
        reason = write.undo_refused or write.reason or ""
        table.add_row(
            Text(write.table),
            Text(write.step or ""),
            styled(write.status),
            *numbers,
            _life(write.life, write.why),
            Text(reason),
        )
    return table


def recovered_table(recovered: Sequence[Recovered], styled: Callable[[str], Text]) -> Table:
    """Return one row for each write that was looked at."""
    table = Table(box=None, header_style="dim")
    for name in ("run", "write", "step", "was", "is", "done", "reason"):
        table.add_column(name, overflow="fold")
    for one in recovered:
        done = "nothing to do" if one.action == "none" else one.action
        reason = Text(one.undo_refused or one.reason or "")
        table.add_row(
            Text(one.run_key or "-"),
            Text(one.table or one.write_key),
            one.step or "",
            styled(one.before),
            styled(one.status),
            done,
            reason,
        )
    return table


def redriven_table(redriven: Sequence[Redriven], styled: Callable[[str], Text]) -> Table:
    """Return one row for each message."""
    table = Table(box=None, header_style="dim")
    for name in ("message", "what", "attempts so far", "request", "reason"):
        table.add_column(name, overflow="fold")
    for one in redriven:
        attempt = "" if one.attempt is None else str(one.attempt)
        table.add_row(one.message_id, styled(one.what), attempt, one.request_id or "", Text(one.reason or ""))
    return table


def event_line(event: Event, styled: Callable[[str], Text]) -> Text:
    """Return what `watch` prints for a person."""
    where = "" if event.table is None else f"  {event.table}{f' ({event.step})' if event.step else ''}"
    reason = event.undo_refused or event.reason
    return Text.assemble(
        (_time(event.at_ms), "dim"),
        "  ",
        styled(event.state),
        f"  {event.kind} {event.run_key}, attempt {event.attempt}{where}",
        f": {reason}" if reason else "",
    )


def _life(life: str | None, why: str | None) -> Text:
    return Text("") if life is None else Text.assemble((life, _LIVES[life]), f": {why}")


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
