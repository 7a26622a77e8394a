"""The size of the image as commands show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from soal.console.document import document_of
from soal.console.view import View

if TYPE_CHECKING:
    from scripts.image.size import Size

__all__ = ["size_view"]


def size_view(size: Size) -> View:
    """Show the layers and parts in megabytes."""
    table = Table(box=None, header_style="dim")
    table.add_column("layer, part", overflow="ellipsis", no_wrap=True)
    table.add_column("MB", justify="right")
    for layer in reversed(size.layers):
        table.add_row(layer.step, f"{layer.bytes / 1e6:,.1f}")
    table.add_row("above the base", f"{size.above_base_bytes / 1e6:,.1f}", style="bold")
    for part in size.parts:
        table.add_row(part.name, f"{part.bytes / 1e6:,.1f}")
    return View({**document_of(size), "aboveBaseBytes": size.above_base_bytes}, (table,))
