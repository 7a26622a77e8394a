"""Find known values in a text, in any form of an ordinary encoder, in one pass over each reading of the text.

Escapes are undone in the text (`readings.py`); only Base64 and hex are separate forms. The forms are sorted, so that
one search at a position finds the longest form that begins there; only positions with the first letters of a form are
searched.
"""

from __future__ import annotations

import base64
import re
from bisect import bisect, bisect_left
from itertools import takewhile
from os.path import commonprefix
from typing import TYPE_CHECKING, Final

from handler.redaction.readings import leveled, readings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from handler.redaction.readings import Reading

__all__ = ["START", "KnownForms", "encoded_forms", "plain_forms"]

START: Final = 4
"""The number of letters of a form that are looked up at each position; no form is shorter."""
_CUT: Final = re.compile(r"[^\S\n]?\[?(?:[…\N{REPLACEMENT CHARACTER}]|\.{2,}+)\]?")
"""The mark of a truncation, as set by the driver, usage errors, `DataFrame.show`, Python's `reprlib` and others; or a
letter whose bytes are incomplete."""
_MIDDLE: Final = re.compile(r"… \([\d,]+ letters\) ")
"""The mark of a middle that `safewriter.bounds.shortened` has left out, between words."""
_DOTS_MIN: Final = 6
"""The least number of letters before a mark of dots, which follow many ordinary words."""
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

    __slots__ = ("_all", "_forms", "_longest", "_starts")

    def __init__(self, forms: Iterable[str]) -> None:
        self._forms = sorted({leveled(form) for form in forms if len(form) >= START})
        self._all = "\n".join(form for form in self._forms if len(form) >= _PIECE_MIN)
        self._longest: dict[str, int] = {}
        """The length of the longest form, by the first letters."""
        for form in self._forms:
            self._longest[form[:START]] = max(len(form), self._longest.get(form[:START], 0))
        letters = ({start[place] for start in self._longest} for place in range(START if self._longest else 0))
        self._starts = re.compile("".join(f"[{re.escape(''.join(sorted(several)))}]" for several in letters))
        """A quick check before the look-up: each letter is one that some form has there."""

    def masked(self, text: str, mask: str, look: Callable[[], None], *, is_cut: bool = False) -> str:
        """Replace all matches by a mask; overlapping ones get one mask. `is_cut`: the text has lost its end.

        The search calls `look` at each of its steps; an error that `look` raises ends it.
        """
        if not self._forms:
            return text
        spans = [
            reading.origin(*span)
            for reading in readings(text, look)
            for span in self._in(reading, look, is_cut=is_cut)
            if span[0] < span[1]
        ]
        return _masked(text, sorted(spans), mask) if spans else text

    def _in(self, reading: Reading, look: Callable[[], None], *, is_cut: bool) -> Iterator[tuple[int, int]]:
        text, longest = reading.text, self._longest
        cuts = _cuts(text, is_cut=is_cut)
        start = self._starts.search(text)
        while start is not None:
            at = start.start()
            if size := longest.get(start[0]):
                look()
                yield from self._at(text, at, text[at : at + size], cuts, look)
            start = self._starts.search(text, at + 1)
        for mark in _MIDDLE.finditer(text):  # a value may have blanks, and its end stand alone
            yield mark.end(), mark.end() + self._end_of("", text, mark.end(), look)
        for piece in _PIECE.finditer(reading.plain):
            look()
            word = leveled(piece[0].rstrip("="))
            # The value may begin or end within the word.
            if len(word) >= _PIECE_MIN and (word[:_PIECE_MIN] in self._all or word[-_PIECE_MIN:] in self._all):
                yield piece.span()

    def _at(
        self, text: str, at: int, rest: str, cuts: dict[int, tuple[int, int]], look: Callable[[], None]
    ) -> Iterator[tuple[int, int]]:
        place = bisect(self._forms, rest)
        forms = (self._forms[index] for index in range(place - 1, -1, -1))  # the longest one first
        for form in takewhile(lambda form: form.startswith(rest[:START]), forms):
            look()
            if rest.startswith(form) and _is_whole(form, text, at):
                yield at, at + len(form)
                break
        if not cuts:
            return
        for form in self._forms[max(0, place - 1) : place + 1]:  # no other has more in common with the text
            common = len(commonprefix((form, rest)))  # noqa: RUF071 - letters are meant
            for size in range(common, max(common - len(" [..."), START - 1), -1):  # a form may go on like a mark, too
                mark = at + size
                end, least = cuts.get(mark, (0, 0))
                if end and size >= least:
                    yield at, mark
                    yield end, end + self._end_of(text[at:mark], text, end, look)
                    break

    def _end_of(self, beginning: str, text: str, at: int, look: Callable[[], None]) -> int:
        """Return how much at a place is the end of a form with this beginning: its middle was cut out."""
        start = text[at : at + START]
        if len(start) < START:
            return 0
        forms = (self._forms[index] for index in range(bisect_left(self._forms, beginning), len(self._forms)))
        longest = 0
        for form in takewhile(lambda form: form.startswith(beginning), forms):
            look()
            place = form.find(start, len(beginning))
            while 0 <= place < len(form) - longest:
                look()
                if form.startswith(text[at : at + len(form) - place], place):
                    longest = len(form) - place
                place = form.find(start, place + 1)
        return longest


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
