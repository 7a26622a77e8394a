"""A table that leaves columns out where the screen is narrow, so that each row stays on one line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from soal.console.view import columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.text import Text

_GAP: Final = 2
"""Of blanks around a cell, as rich has them."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column with its cells. `cut_to`: a longer cell may be cut to so many letters, with an ellipsis; else it is
    shown whole. `rank`: a column of a higher rank is left out first; one of rank 0 never is.
    """

    name: str
    cells: Sequence[Text]
    rank: int = 0
    cut_to: int | None = None
    is_number: bool = False

    @property
    def natural(self) -> int:
        """The width that shows all cells whole."""
        return max(len(self.name), *(cell.cell_len for cell in self.cells))

    @property
    def least(self) -> int:
        """The width with which the column can be shown."""
        return self.natural if self.cut_to is None else min(self.natural, max(self.cut_to, len(self.name)))


@dataclass(frozen=True, slots=True)
class FittingTable:
    """A table of rows with at least one row. In JSON nothing is left out: that is the view's document."""

    columns: Sequence[Column]

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        widths: dict[str, int] = {}
        left = options.max_width
        for column in sorted(self.columns, key=lambda column: column.rank):
            if column.rank == 0 or column.least + _GAP <= left:
                widths[column.name] = column.least
                left -= column.least + _GAP
        shown = [column for column in self.columns if column.name in widths]
        for column in shown:
            more = max(0, min(left, column.natural - column.least))
            widths[column.name] += more
            left -= more
        table = columns(
            *(column.name for column in shown), right=tuple(column.name for column in shown if column.is_number)
        )
        for row in zip(*(column.cells for column in shown), strict=True):
            cells = [cell.copy() for cell in row]
            for column, cell in zip(shown, cells, strict=True):
                if column.cut_to is not None:
                    cell.truncate(widths[column.name], overflow="ellipsis")
            table.add_row(*cells)
        yield table
