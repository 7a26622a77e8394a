"""Text made by others, as a terminal may have it: each control character is shown by its number.

A terminal obeys what stands in such a text: it changes its title, fills the clipboard, clears lines, or writes from
right to left.
"""

from __future__ import annotations

import logging
import re
import sys
import traceback
from typing import Final

__all__ = ["CONTROLS", "VisibleFormatter", "crash", "json_visible", "visible"]

# C0 but for tab and newline, DEL and C1, marks of direction, ends of lines, characters without a width, by which two
# names would look equal, and halves of surrogate pairs, which no stream takes.
CONTROLS: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069"
    "\ufeff\ud800-\udfff"
)
_CONTROL: Final = re.compile(f"[{CONTROLS}]")
_LATIN_MAX: Final = 0xFF


def visible(text: str) -> str:
    """Return a text whose control characters are shown by their numbers. Newlines stay."""
    return _CONTROL.sub(_number, text)


def json_visible(text: str) -> str:
    """Return the same JSON without a control character."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


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
