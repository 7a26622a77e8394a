"""The only path of text to a terminal. Much of the text is untrusted: tables, steps, reasons, keys, lines of a log.

`Screen` prints a control character as its number (visible.py), indents every line after a newline in a text, and
shortens long runs of blanks. Otherwise text could start a screen line and pass for a line of ours. It also shortens
cells of tables. It does so where rich renders text, so no view can bypass it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import rich.text
from rich.console import Console
from rich.table import Table
from rich.text import Text

from soal.console.visible import CONTROL, CONTROLS, LONG_BLANKS, visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import ConsoleOptions, RenderableType
    from rich.segment import Segment

_CELL_MAX: Final = 2000
"""Letters: an S3 path has 1,100 at most."""
_NEXT_LINE: Final = "\n    "
_FEW: Final = "    "
_CHANGED: Final = re.compile(f"\r\n|\n(?!    )|[{CONTROLS}]|{LONG_BLANKS}")
"""Text in a table cell passes twice. Terminals are wider than the longest run of blanks that stays."""

rich.text.strip_control_codes = lambda text, *_: text  # type: ignore[attr-defined]  # rich has no option for it
"""Rich would silently drop five control characters before this module sees the text."""


class Screen(Console):
    """A console for untrusted text. It interprets no markup."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - as rich's own
        super().__init__(**{"highlight": False, "markup": False, "emoji": False, **options})

    def render_str(self, text: str, **options: Any) -> Text:  # noqa: ANN401 - as rich's own
        """Return a plain string, such as a cell of a table, as safe text."""
        return _harmless(super().render_str(text, **options))

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render anything as safe segments; rich passes all its output through this method."""
        if isinstance(renderable, Table):  # rich measures cells before it renders them
            for column in renderable.columns:
                cells = column._cells  # noqa: SLF001 - rich has no other way to change one
                cells[:] = map(_cell, cells)
        for segment in super().render(_harmless(renderable) if isinstance(renderable, Text) else renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


def _cell(cell: RenderableType) -> RenderableType:
    """Return a cell of a table as safe text. A long one would fill thousands of lines of its narrow column."""
    if isinstance(cell, str | Text) and len(cell) > _CELL_MAX:
        from safewriter.bounds import shortened  # it takes longer to import than the command line

        cell = Text(shortened(str(cell), _CELL_MAX), "" if isinstance(cell, str) else cell.style)
    return _harmless(cell) if isinstance(cell, Text) else cell


def _harmless(text: Text) -> Text:
    """Return the text with only its unsafe parts replaced; the styles stay."""
    matches = list(_CHANGED.finditer(text.plain))
    if not matches:
        return text
    pieces = text.divide(sorted({edge for match in matches for edge in match.span()}))
    copy = text.blank_copy()
    for piece in pieces:
        if _CHANGED.fullmatch(piece.plain) is None:
            copy.append_text(piece)
        else:
            is_blank = piece.plain.isspace() and CONTROL.search(piece.plain) is None
            copy.append(_NEXT_LINE if piece.plain.endswith("\n") else _FEW if is_blank else visible(piece.plain))
    return copy
