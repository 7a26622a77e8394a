"""The one way of text to a terminal. Much of it was made by others: tables, steps, reasons, keys, lines of a log.

A control character is shown by its number (visible.py), a line that a text begins is indented, and many blanks are
few: else the rest would stand at the beginning of a screen line, and look like a line of ours. `Screen` does so where
rich makes text into output, which no view can leave out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import rich.text
from rich.console import Console
from rich.table import Table
from rich.text import Text

from soal.console.visible import CONTROL, CONTROLS, visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import ConsoleOptions, RenderableType
    from rich.segment import Segment

_NEXT_LINE: Final = "\n    "
_FEW: Final = "    "
_BLANKS: Final = "\t \xa0\u1680\u2000-\u200a\u202f\u205f\u3000"
_CHANGED: Final = re.compile(f"\r\n|\n(?!    )|[{CONTROLS}]|[{_BLANKS}]{{17,}}|\t[{_BLANKS}]{{0,14}}\t[{_BLANKS}]*")
"""A text may come by twice: as the cell of a table, and by itself. No terminal has so few columns as blanks stay."""

rich.text.strip_control_codes = lambda text, *_: text  # type: ignore[attr-defined]  # rich has no option for it
"""Rich leaves five of them out, as if they were not there, before anything here sees the text."""


class Screen(Console):
    """A console for text made by others. It knows no markup."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - as rich's own
        super().__init__(**{"highlight": False, "markup": False, "emoji": False, **options})

    def render_str(self, text: str, **options: Any) -> Text:  # noqa: ANN401 - as rich's own
        """Return the text of a cell, or of anything else that is a plain string."""
        return _harmless(super().render_str(text, **options))

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Make output of anything: all that rich writes passes here."""
        if isinstance(renderable, Table):  # measures its cells before it renders them
            for column in renderable.columns:
                cells = column._cells  # noqa: SLF001 - rich has no other way to change one
                cells[:] = [_harmless(cell) if isinstance(cell, Text) else cell for cell in cells]
        for segment in super().render(_harmless(renderable) if isinstance(renderable, Text) else renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


def _harmless(text: Text) -> Text:
    """Return a text with its styles. Only what has to be changed is replaced."""
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
