"""The readings of a text: the text itself, and the text with its escapes undone, repeatedly.

Searching each reading of a line for a secret needs no list of how URLs, HTML, XML, JSON, Python, Java, SQL, CSV or a
shell escape it: a letter escaped in any of these ways is that letter again. Both the secret and the line are read so.
Where the ways differ, both are normalised: a plus to a blank, a double quote to a single one, consecutive quotes to
one; a backslash that escapes nothing is dropped.
"""

from __future__ import annotations

import html
import re
import sys
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Reading", "leveled", "readings"]

_DEPTH: Final = 3
"""How often escapes are undone. Without a limit, a crafted text could make this expensive."""
_H: Final = "[0-9A-Fa-f]"
_NEXT: Final = f"[89ABab]{_H}"


def _letter(mark: str) -> str:
    """Return the pattern of one letter in which a mark precedes each byte, of UTF-8 or Latin-1."""
    return (
        rf"{mark}(?:[CDcd]{_H}{mark}{_NEXT}|[Ee]{_H}(?:{mark}{_NEXT}){{2}}|[Ff][0-7](?:{mark}{_NEXT}){{3}}|{_H}{{2}})"
    )


_P: Final = _letter(r"\\*+%")
_X: Final = _letter(r"\\++x")
_O: Final = r"\\++2[0-7]{2}"
_OCTAL: Final = rf"\\++3[0-3][0-7]{_O}|\\++3[45][0-7](?:{_O}){{2}}|\\++36[0-7](?:{_O}){{3}}|\\++[0-3][0-7]{{2}}"
"""A letter as a shell in the locale C writes it: its bytes in octal."""
_ESCAPE: Final = re.compile(
    rf"{_P}|&(?:\#(?:[0-9]{{1,7}}|[xX]{_H}{{1,6}})|[A-Za-z][A-Za-z0-9]{{1,31}});"
    rf"|(?=\\)(?:{_X}|\\++u[Dd][89ABab]{_H}{{2}}\\++u[Dd][C-Fc-f]{_H}{{2}}|\\++u{_H}{{4}}|\\++U{_H}{{8}}"
    rf"|{_OCTAL}|\\++[nrt]|\\++'(?:\\*+')*+|\\++)"
    r"|'(?:\\*+')++"
)
_MARKS: Final = re.compile(r"[%\\]+[xuU]?")
_BLANKS: Final = {"n": "\n", "r": "\r", "t": "\t"}


class Reading:
    """A text, and the position of each part in the text from which it was read."""

    __slots__ = ("_before", "_edges", "plain", "text")

    def __init__(self, plain: str, edges: list[tuple[int, int, int, int]], before: Reading | None) -> None:
        self.plain = plain
        """The text before `leveled`."""
        self.text = leveled(plain)
        """The text for comparison, of the same length."""
        self._edges = edges
        """For each escape: start and end of its letter here, and start and end of the escape before."""
        self._before = before

    def origin(self, start: int, stop: int) -> tuple[int, int]:
        """Return the position of a part, which is not empty, in the original text."""
        if self._before is None:
            return start, stop
        return self._before.origin(self._place(start)[0], self._place(stop - 1)[1])

    def _place(self, at: int) -> tuple[int, int]:
        index = bisect_right(self._edges, at, key=lambda edge: edge[0]) - 1
        if index < 0:
            return at, at + 1
        _, end, first, last = self._edges[index]
        return (first, last) if at < end else (last + at - end, last + at - end + 1)


def leveled(text: str) -> str:
    """Return a text in which equivalent letters are equal."""
    return text.replace("+", " ").replace('"', "'")


def readings(text: str, look: Callable[[], None] = lambda: None) -> list[Reading]:
    """Return the text, then the text with its escapes undone once, twice and so on.

    Calls `look` at each escape, which takes about 120 bytes; an error that `look` raises ends the reading.
    """
    chain = [Reading(text, [], None)]
    for _ in range(_DEPTH):
        reading = _undone(chain[-1], look)
        if reading is None:
            break
        chain.append(reading)
    return chain


def _undone(before: Reading, look: Callable[[], None]) -> Reading | None:
    parts: list[str] = []
    edges: list[tuple[int, int, int, int]] = []
    size = end = 0
    for match in _ESCAPE.finditer(before.plain.replace('"', "'")):
        look()
        letter = _read(match[0])
        if letter == match[0]:
            continue
        start = match.start()
        parts += [before.plain[end:start], letter]
        size += start - end
        end = match.end()
        edges.append((size, size + len(letter), start, end))
        size += len(letter)
    return Reading("".join([*parts, before.plain[end:]]), edges, before) if edges else None


def _read(escape: str) -> str:
    if escape[0] == "&":
        return html.unescape(escape) if escape[1] != "#" else _character(escape[2:-1].lower())
    if escape[0] == "'":
        return "'"
    kind = escape.lstrip("\\")[:1]
    if kind in _BLANKS or kind in ("", "'"):
        return _BLANKS.get(kind, kind)
    codes = _MARKS.sub(" ", escape).split()
    if kind in "uU":
        units = b"".join(int(code, 16).to_bytes(4 if kind == "U" else 2) for code in codes)
        return units.decode("utf-32-be" if kind == "U" else "utf-16-be", "replace")
    data = bytes(int(code, 16 if kind in "%x" else 8) for code in codes)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _character(number: str) -> str:
    """Return the character of a number in HTML; `html.unescape` drops some."""
    code = int(number[1:], 16) if number[0] == "x" else int(number)
    return chr(code) if code <= sys.maxunicode else "\N{REPLACEMENT CHARACTER}"
