"""Settled writes, as `soal recover` shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from soal.console.document import document_of
from soal.console.view import View, columns, styled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.table import Table

    from soal.recover.recoverer import Recovered

__all__ = ["recovered_view"]


def recovered_view(recovered: Sequence[Recovered]) -> View:
    """Show one row for each write, below it the changes of a dry run."""
    rows = _table(recovered) if recovered else "no write to recover"
    return View(document_of(recovered), (rows, *_changes(recovered)))


def _table(recovered: Sequence[Recovered]) -> Table:
    table = columns("run", "write", "step", "was", "is", "done", "reason")
    for one in recovered:
        table.add_row(
            Text(one.run_key or "-"),
            Text(one.table or one.write_key),
            one.step or "",
            styled(one.before),
            styled(one.status),
            "nothing to do" if one.action == "none" else one.action,
            Text(one.undo_refused or one.reason or ""),
        )
    return table


def _changes(recovered: Sequence[Recovered]) -> Iterator[Text]:
    for one in recovered:
        yield from (Text(f"  {change}", style="dim") for change in one.changes)
        if one.changes_more:
            yield Text(f"  and {one.changes_more:,} more", style="dim")
