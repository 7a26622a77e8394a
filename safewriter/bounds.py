"""Bounds on untrusted JSON: the memory of its values, the range of numbers, the types of fields."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    _Record = TypeVar("_Record", bound=DataclassInstance)

__all__ = ["LONG_MAX", "TEXT_MAX", "checked", "count", "short", "shortened", "space_bytes", "space_of", "whole"]

LONG_MAX: Final = 2**63 - 1
_COUNT_MAX: Final = 2**53
"""No real count comes near it, and one more than that still fits into 64 bits."""
_MOMENT_MAX: Final = 253_402_300_799_999
"""The last millisecond of the year 9999: Python has no later moment."""
TEXT_MAX: Final = 8192
"""More letters than a step's name (4,096), an S3 path (1,100), a table's name in a catalog or a message (`shortened`)
has. Settlers and commands keep and show such texts of thousands of writes.
"""
_SHOWN_MAX: Final = 200
_MESSAGE_MAX: Final = 6000
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "int": (int,),
    "int | None": (int, type(None)),
    "float": (int, float),
    "str": (str,),
    "str | None": (str, type(None)),
    "bool": (bool,),
}
_SPACE_BYTES: Final = (("{", 250), ("[", 100), (",", 70), (":", 110))
"""The most memory that Python takes for a value, by the character before it: a dictionary with one entry, an empty
list, a short text or a float in a list, a name in a dictionary. tests/unit/safewriter/test_bounds.py measures it.
"""
_WIDEST_BYTES: Final = 4
"""What Python takes for each character of a text that holds one above U+FFFF."""


def space_bytes(text: str | bytes) -> int:
    """Return how many bytes of memory the values of a JSON text take at most, without parsing it.

    A text of nothing but `{},` takes thirty times its length, a table's log five times.
    """
    letter_bytes = 1 if text.isascii() else _WIDEST_BYTES
    if isinstance(text, str):
        return letter_bytes * len(text) + sum(text.count(mark) * size for mark, size in _SPACE_BYTES)
    return letter_bytes * len(text) + sum(text.count(mark.encode()) * size for mark, size in _SPACE_BYTES)


def space_of(text: str) -> int:
    """Return how many bytes of memory the characters of a text take at most: a single wide one widens all."""
    return len(text) if text.isascii() else _WIDEST_BYTES * len(text)


def whole(value: object) -> int:
    """Return the value if it is an integer that fits into a Java `long`; raise `ValueError` otherwise."""
    if not isinstance(value, int) or isinstance(value, bool) or not -LONG_MAX <= value <= LONG_MAX:
        raise ValueError("is not a whole number of 64 bits")
    return value


def short(value: object) -> str:
    """Return the beginning of a value's `repr`, for messages."""
    if isinstance(value, str | bytes):
        value = value[: _SHOWN_MAX + 1]
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"


def shortened(message: str, most: int = _MESSAGE_MAX) -> str:
    """Return the message; if it has more than `most` letters, only its beginning and its last words.

    A word is cut only before the ellipsis, where the redaction looks for half a secret.
    """
    if len(message) <= most:
        return message
    beginning = most * 2 // 3
    last = message[beginning - most :].partition(" ")[2]
    return f"{message[:beginning]}… ({len(message):,} letters) {last}"


def count(value: object) -> int:
    """Return the value if it is an integer from 0 to 2^53; raise `ValueError` otherwise."""
    number = whole(value)
    if not 0 <= number <= _COUNT_MAX:
        raise ValueError("is no number from 0 to 2^53")
    return number


def checked(record: _Record) -> _Record:
    """Return a record that was read from JSON if the texts and numbers in it have their declared types and are in
    range; otherwise a `TypeError` or `ValueError` names the field. Fields that end with `_ms` are moments or times. A
    text has at most 8,192 letters.
    """
    for field in dataclasses.fields(record):
        value: Any = getattr(record, field.name)
        allowed = _TYPES.get(str(field.type))
        if allowed is None:
            continue
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            raise TypeError(f"{field.name} has the type {type(value).__name__}")
        if isinstance(value, str) and len(value) > TEXT_MAX:
            raise ValueError(f"{field.name} has {len(value):,} letters, and {TEXT_MAX:,} at most")
        least, most = (0, _MOMENT_MAX) if field.name.endswith("_ms") else (-LONG_MAX, LONG_MAX)
        if isinstance(value, int | float) and not (math.isfinite(value) and least <= value <= most):
            raise ValueError(f"{field.name} is too small or too large")
    return record
