"""Find known values in a text, in any form of an ordinary encoder, in one pass over each reading of the text.

Escapes are undone in the text (`readings.py`); only Base64 and hex are separate forms. The forms are sorted, so that
one search at a position finds the longest form that begins there; only positions with the first letters of a form are
searched.
"""

from __future__ import annotations

import base64
import re
from bisect import bisect, bisect_left
from typing import TYPE_CHECKING, Final

from handler.redaction.readings import leveled, readings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from handler.redaction.readings import Reading

__all__ = ["START", "KnownForms", "encoded_forms", "plain_forms"]

START: Final = 4
"""The number of letters of a form that are looked up at each position; no form is shorter."""
_CUT: Final = re.compile(r"[^\S\n]?\[?(?:[…\N{REPLACEMENT CHARACTER}]|\.{2,}+)\]?")
"""The mark of a truncation, as set by the driver, usage errors, `DataFrame.show`, Python's `reprlib` and others; or a
letter whose bytes are incomplete."""
_DOTS_MIN: Final = 6
"""The least number of letters before a mark of dots, which follow many ordinary words."""
_CUT_FORMS_MAX: Final = 32
_ENDS_MAX: Final = 64
_HALF_ESCAPE: Final = re.compile(r"[%\\&][#\w]{0,7}\Z")
_ENCODED_MIN: Final = 8
_WORD: Final = re.compile(r"[A-Za-z]?(?:[a-z]{1,11}|[A-Z]{1,11})")
_PIECE_MIN: Final = 20
_PIECE: Final = re.compile(rf"(?m)(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_=-]{{{_PIECE_MIN},}}+(?=[^\S\n]*+$)")
"""The last word of a line: Base64 and hex are folded, and a line may begin anywhere in them."""


def plain_forms(value: str) -> Iterator[str]:
    """Yield the readings of a value."""
    for bare in dict.fromkeys((value, value.strip())):
        yield from (reading.plain for reading in readings(bare))


def encoded_forms(value: str) -> Iterator[str]:
    """Yield the value in hex, and the part of its Base64 that is the same whatever surrounds it, for each offset."""
    data = value.encode(errors="replace")
    forms = [data.hex(), data.hex().upper()]
    for before in range(3):
        text = base64.b64encode(bytes(before) + data).decode()
        sure = text[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
        forms += [sure, sure.replace("+", "-").replace("/", "_")]
    yield from (form for form in forms if len(form) >= _ENCODED_MIN)


class KnownForms:
    """Finds forms, and their beginnings before the mark of a truncation."""

    __slots__ = ("_all", "_forms", "_longest", "_parents")

    def __init__(self, forms: Iterable[str]) -> None:
        self._forms = sorted({leveled(form) for form in forms})
        self._all = "\n".join(form for form in self._forms if len(form) >= _PIECE_MIN)
        self._longest: dict[str, int] = {}
        """The length of the longest form, by the first letters."""
        self._parents: list[int] = []
        """For each form, the index of the longest other form that is a prefix of it; -1 for none."""
        for place, form in enumerate(self._forms):
            self._longest[form[:START]] = max(len(form), self._longest.get(form[:START], 0))
            parent = place - 1
            while parent >= 0 and not form.startswith(self._forms[parent]):
                parent = self._parents[parent]
            self._parents.append(parent)

    def masked(self, text: str, mask: str, *, is_cut: bool = False) -> str:
        """Replace all matches by a mask; overlapping ones get one mask. `is_cut`: the text has lost its end."""
        if not self._forms:
            return text
        spans = [
            reading.origin(*span)
            for reading in readings(text)
            for span in self._in(reading, is_cut=is_cut)
            if span[0] < span[1]
        ]
        return _masked(text, sorted(spans), mask) if spans else text

    def _in(self, reading: Reading, *, is_cut: bool) -> Iterator[tuple[int, int]]:
        text, longest = reading.text, self._longest
        cuts = _cuts(text, is_cut=is_cut)
        ends: dict[tuple[str, str], list[int]] = {}
        for at in range(len(text) - START + 1):
            size = longest.get(text[at : at + START])
            if size:
                yield from self._at(text, at, text[at : at + size], cuts, ends)
        for piece in _PIECE.finditer(reading.plain):
            word = leveled(piece[0].rstrip("="))
            # The value may begin or end within the word.
            if len(word) >= _PIECE_MIN and (word[:_PIECE_MIN] in self._all or word[-_PIECE_MIN:] in self._all):
                yield piece.span()

    def _at(
        self,
        text: str,
        at: int,
        rest: str,
        cuts: dict[int, tuple[int, int]],
        ends: dict[tuple[str, str], list[int]],
    ) -> Iterator[tuple[int, int]]:
        place = bisect(self._forms, rest)
        index = place - 1
        while index >= 0 and not (rest.startswith(self._forms[index]) and _is_whole(self._forms[index], text, at)):
            index = self._parents[index]
        if index >= 0:
            yield at, at + len(self._forms[index])
        if not cuts:
            return
        for form in self._forms[max(0, place - 1) : place + 1]:  # no other form shares a longer prefix with the text
            common = _common(form, rest)
            for size in range(common, max(common - len(" [..."), START - 1), -1):  # a form may continue like a mark
                mark = at + size
                end, least = cuts.get(mark, (0, 0))
                if end and size >= least:
                    yield at, mark
                    yield end, end + self._end_of(text[at:mark], text, end, ends)
                    break

    def _end_of(self, beginning: str, text: str, at: int, ends: dict[tuple[str, str], list[int]]) -> int:
        """Return the length of the text at a position that ends a form with this beginning and a missing middle."""
        first = bisect_left(self._forms, beginning)
        start = text[at : at + START]
        if len(start) < START:
            return 0
        for form in self._forms[first : first + _CUT_FORMS_MAX]:
            if not form.startswith(beginning):
                break
            if (form, start) not in ends:
                ends[form, start] = sorted(_places(form, start))
            for place in ends[form, start]:
                if place >= len(beginning) and form.startswith(text[at : at + len(form) - place], place):
                    return len(form) - place
        return 0


def _places(form: str, start: str) -> Iterator[int]:
    """Yield the last positions of `start` in a form, the last one first."""
    place = len(form)
    for _ in range(_ENDS_MAX):
        place = form.rfind(start, 0, place + START - 1)
        if place < 0:
            return
        yield place


def _cuts(text: str, *, is_cut: bool) -> dict[int, tuple[int, int]]:
    """Return, by each position where a truncated form may end: where its other part may begin, and its least length."""
    cuts = {match.start(): (match.end(), _DOTS_MIN if ".." in match[0] else START) for match in _CUT.finditer(text)}
    if is_cut:
        cuts[len(text)] = (len(text), START)
    for mark, cut in list(cuts.items()):
        half = _HALF_ESCAPE.search(text[max(0, mark - len("\\U0010fff")) : mark])
        if half is not None:
            cuts.setdefault(mark - len(half[0]), cut)
    return cuts


def _common(text: str, other: str) -> int:
    """Return the length of the common prefix of two texts, by bisection."""
    low, high = 0, min(len(text), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if text[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _masked(text: str, spans: list[tuple[int, int]], mask: str) -> str:
    parts: list[str] = []
    end = 0
    for start, stop in spans:
        if start >= end:
            parts += [text[end:start], mask]
        end = max(end, stop)
    return "".join([*parts, text[end:]])


def _is_whole(form: str, text: str, at: int) -> bool:
    """Return whether a form stands alone: a word (`postgres`) must not be part of a longer one (`postgresql`)."""
    if _WORD.fullmatch(form) is None:
        return True
    around = text[max(0, at - 1) : at] + text[at + len(form) : at + len(form) + 1]
    return not any(letter.isascii() and letter.isalpha() for letter in around)
