"""Known values in a text, in the forms that ordinary encoders give them, by one pass over the text.

The forms come from the encoders themselves. They are sorted, so that at each place one search finds the longest one
that begins there; only places at which the first letters of a form stand are searched.
"""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from bisect import bisect, bisect_left
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus, unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["START", "KnownForms", "forms_of"]

START: Final = 4
"""So many letters of a form are looked up at each place; no form is shorter."""
_CUT: Final = re.compile(r"…|(?=\.\.\.)")
"""The mark of a cut: as the driver and usage errors set it, and as `DataFrame.show` and Python's `reprlib` do."""
_CUT_MIN: Final = 6
"""Three dots stand behind many a word."""
_CUT_FORMS_MAX: Final = 32
_ENCODED_MAX: Final = 512
_ENCODED_MIN: Final = 8
_WORD: Final = re.compile(r"[A-Za-z]?(?:[a-z]{1,11}|[A-Z]{1,11})")
_GSON: Final = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&='"}
_HEX: Final = re.compile("%[0-9A-F]{2}")


def forms_of(value: str) -> Iterator[str]:
    """Return a value as it is, and as Python, URLs, HTML, XML, JSON, SQL, CSV, shells, Base64 and hex write it."""
    for plain in dict.fromkeys((value, value.strip(), unquote(value))):
        yield plain
        yield from (repr(plain)[1:-1], repr(plain.encode(errors="replace"))[2:-1], plain.replace("\\", "\\\\"))
        for quoted in (_quoted(plain, quote, ""), _quoted(plain, quote, "/"), _quoted(plain, quote_plus, "")):
            yield from (quoted, _HEX.sub(lambda found: found[0].lower(), quoted))
        escaped = html.escape(plain)
        yield from (escaped, html.escape(plain, quote=False), escaped.replace("&#x27;", "'"))
        yield from (escaped.replace("&#x27;", "&#39;"), escaped.replace("&#x27;", "&apos;"))
        for is_ascii in (True, False):
            text = json.dumps(plain, ensure_ascii=is_ascii)[1:-1]
            yield from (text, text.replace("/", "\\/"), text.translate(_GSON))
        yield from (plain.replace("'", "''"), plain.replace('"', '""'), plain.replace("'", "\\'"))
        yield from (plain.replace("'", "'\\''"), shlex.quote(plain).strip("'"))
        yield from _encoded(plain.encode(errors="replace"))


def _quoted(text: str, encode: Callable[..., str], safe: str) -> str:
    return encode(text, safe=safe, errors="replace")


def _encoded(data: bytes) -> Iterator[str]:
    """Return what is sure of the value in Base64, wherever it begins in what is encoded, and in hex."""
    if len(data) > _ENCODED_MAX:
        return
    forms = [data.hex(), data.hex().upper()]
    for before in range(3):
        text = base64.b64encode(bytes(before) + data).decode()
        sure = text[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
        forms += [sure, sure.replace("+", "-").replace("/", "_")]
    yield from (form for form in forms if len(form) >= _ENCODED_MIN)


class KnownForms:
    """Finds forms, and their beginnings before the mark of a cut."""

    __slots__ = ("_forms", "_parents", "_starts", "longest")

    def __init__(self, forms: Iterable[str]) -> None:
        self._forms = sorted(set(forms))
        self._starts = {form[:START] for form in self._forms}
        self._parents: list[int] = []
        """Of each form the longest one with which it begins, by its place; -1 for none."""
        self.longest = max(map(len, self._forms), default=0)
        for place, form in enumerate(self._forms):
            parent = place - 1
            while parent >= 0 and not form.startswith(self._forms[parent]):
                parent = self._parents[parent]
            self._parents.append(parent)

    def masked(self, text: str, mask: str) -> str:
        """Put a mask in the place of all that is found; what overlaps gets one."""
        starts = self._starts
        if not starts:
            return text
        cuts = {found.start(): found.end() if found[0] else found.end() + len("...") for found in _CUT.finditer(text)}
        spans: list[tuple[int, int]] = []
        for at in range(len(text) - START + 1):
            if text[at : at + START] in starts:
                spans += self._at(text, at, cuts)
        return _masked(text, sorted(spans), mask)

    def _at(self, text: str, at: int, cuts: dict[int, int]) -> Iterator[tuple[int, int]]:
        rest = text[at : at + self.longest]
        place = bisect(self._forms, rest)
        found = place - 1
        while found >= 0 and not (text.startswith(self._forms[found], at) and _is_whole(self._forms[found], text, at)):
            found = self._parents[found]
        if found >= 0:
            yield at, at + len(self._forms[found])
        if not cuts:
            return
        for form in self._forms[max(0, place - 1) : place + 1]:  # no other has more in common with the text
            common = _common(form, rest)
            for size in range(common, max(common - len("..."), 0), -1):  # a form may go on with dots, too
                mark = at + size
                end = cuts.get(mark)
                if end is None or size < (_CUT_MIN if text[mark] == "." else START):
                    continue
                yield at, mark
                yield end, end + self._end_of(text[at:mark], text, end)
                break

    def _end_of(self, beginning: str, text: str, at: int) -> int:
        """Return how much at a place is the end of a form with this beginning: its middle was cut out."""
        first = bisect_left(self._forms, beginning)
        for form in self._forms[first : first + _CUT_FORMS_MAX]:
            if not form.startswith(beginning):
                break
            sizes = range(min(len(form) - len(beginning), len(text) - at), START - 1, -1)
            size = next((one for one in sizes if text.startswith(form[-one:], at)), 0)
            if size:
                return size
        return 0


def _common(one: str, other: str) -> int:
    """Return how many letters two texts have in common at their beginnings, by halving."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _masked(text: str, spans: list[tuple[int, int]], mask: str) -> str:
    parts: list[str] = []
    end = 0
    for start, stop in spans:
        if stop == start:
            continue
        if start >= end:
            parts += [text[end:start], mask]
        end = max(end, stop)
    return "".join([*parts, text[end:]])


def _is_whole(form: str, text: str, at: int) -> bool:
    """Tell whether a form stands by itself: a word (`postgres`) does not inside a longer one (`postgresql`)."""
    alone = _alone(form)
    return alone is None or alone.match(text, at) is not None


@lru_cache(maxsize=4096)
def _alone(form: str) -> re.Pattern[str] | None:
    if _WORD.fullmatch(form) is None:
        return None
    # The letter of an escape (%3A, \n) belongs to no word.
    return re.compile(rf"(?:(?<![A-Za-z])|(?<=%[0-9A-Fa-f]{{2}})|(?<=\\[a-z])){form}(?![A-Za-z])")
