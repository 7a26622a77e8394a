"""Make untrusted text safe for a terminal: replace each control character by its number.

Control characters in a text could change the terminal's title, fill the clipboard, clear lines, or write from right to
left.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import traceback
from typing import Final

# C0 except tab and newline, DEL, C1, direction marks, line separators, surrogates (no stream can encode them), and
# invisible characters, with which two different names would look equal: Unicode's Default_Ignorable_Code_Point, its
# format characters, and its blank fillers.
CONTROLS: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890-\u0891\u08e2\u115f-\u1160"
    "\u17b4-\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
CONTROL: Final = re.compile(f"[{CONTROLS}]")
_BLANKS: Final = "\t \xa0\u1680\u2000-\u200a\u202f\u205f\u3000"
LONG_BLANKS: Final = f"[{_BLANKS}]{{17,}}|\t[{_BLANKS}]{{0,14}}\t[{_BLANKS}]*"
"""A run of blanks that could carry a text to the beginning of a terminal's next line."""
_LATIN_MAX: Final = 0xFF
_PLANE_MAX: Final = 0xFFFF
_DELETE: Final = 0x7F
"""The only control character that JSON does not escape."""


def visible(text: str) -> str:
    """Return the text with its control characters as numbers. Tabs and newlines stay."""
    return CONTROL.sub(_number, text)


def json_visible(text: str) -> str:
    """Return the same JSON with its control characters escaped."""
    return CONTROL.sub(lambda match: json.dumps(match[0])[1:-1] if ord(match[0]) != _DELETE else "\\u007f", text)


class VisibleFormatter(logging.Formatter):
    """Formats warnings that a library logs while a command runs."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the text without control characters. Its further lines are indented: none looks like an answer."""
        return _hanging(visible(super().format(record)))


def crash(error: BaseException) -> None:
    """Print the traceback of an unexpected error, whose message may contain anything."""
    sys.stderr.write(_hanging(visible("".join(traceback.format_exception(error)).rstrip())) + "\n")


def _hanging(text: str) -> str:
    return re.sub(LONG_BLANKS, "    ", text).replace("\n", "\n  ")


def _number(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code > _PLANE_MAX:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code <= _LATIN_MAX else f"\\u{code:04x}"
