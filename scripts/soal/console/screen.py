"""The one way of text to a terminal. Much of it was made by others: tables, steps, reasons, keys, lines of a log.

A terminal obeys what stands in such a text: it changes its title, fills the clipboard, clears lines, or writes from
right to left. So a control character is shown by its number, and a line that a text begins is indented: it looks like
no line of ours. `Screen` does so where rich makes text into output, which no view can leave out.
"""

from __future__ import annotations

import logging
import re
import sys
import traceback
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import ConsoleOptions, RenderableType
    from rich.segment import Segment

__all__ = ["Screen", "VisibleFormatter", "crash", "json_visible", "visible"]

# C0 but for tab and newline, DEL and C1, marks of direction, ends of lines, characters without a width, by which two
# names would look equal, and halves of surrogate pairs, which no stream takes.
_CONTROLS: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069"
    "\ufeff\ud800-\udfff"
)
_CONTROL: Final = re.compile(f"[{_CONTROLS}]")
_LATIN_MAX: Final = 0xFF
_NEXT_LINE: Final = "\n    "
_CHANGED: Final = re.compile(f"\r\n|\n(?!    )|[{_CONTROLS}]")
"""A text may come by twice: as the cell of a table, and by itself."""


def visible(text: str) -> str:
    """Return a text whose control characters are shown by their numbers. Newlines stay."""
    return _CONTROL.sub(_number, text)


def json_visible(text: str) -> str:
    """Return the same JSON without a control character."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class Screen(Console):
    """A console for text made by others. It knows no markup."""

    def __init__(self, **how: Any) -> None:  # noqa: ANN401 - as rich's own
        super().__init__(**{"highlight": False, "markup": False, "emoji": False, **how})

    def render_str(self, text: str, **how: Any) -> Text:  # noqa: ANN401 - as rich's own
        """Return the text of a cell, or of anything else that is a plain string."""
        return _shown(super().render_str(text, **how))

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Make output of anything: all that rich writes passes here."""
        if isinstance(renderable, Table):  # measures its cells before it renders them
            for column in renderable.columns:
                cells = column._cells  # noqa: SLF001 - rich has no other way to change one
                cells[:] = [_shown(cell) if isinstance(cell, Text) else cell for cell in cells]
        for segment in super().render(_shown(renderable) if isinstance(renderable, Text) else renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


class VisibleFormatter(logging.Formatter):
    """Of the warnings that a library logs while a command runs."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return visible(super().format(record))


def crash(error: BaseException) -> None:
    """Print the traceback of an error that nobody has expected, whose message may have anything in it."""
    sys.stderr.write(visible("".join(traceback.format_exception(error))))


def _number(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code <= _LATIN_MAX else f"\\u{code:04x}"


def _shown(text: Text) -> Text:
    """Return a text with its styles. Only what has to be changed is replaced."""
    found = list(_CHANGED.finditer(text.plain))
    if not found:
        return text
    pieces = text.divide(sorted({edge for one in found for edge in one.span()}))
    shown = text.blank_copy()
    for piece in pieces:
        if _CHANGED.fullmatch(piece.plain) is None:
            shown.append_text(piece)
        else:
            told = _NEXT_LINE if piece.plain.endswith("\n") else visible(piece.plain)
            shown.append(told)
    return shown
