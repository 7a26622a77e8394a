"""Bounds on values of JSON from outside: the memory that they take, and the range of whole numbers."""

from __future__ import annotations

from typing import Final

__all__ = ["space_bytes", "whole"]

_LONG_MAX: Final = 2**63 - 1
_SPACE_BYTES: Final = (("{", 250), ("[", 100), (",", 70), (":", 110))
"""What Python takes at most for a value, by the character before it: a dictionary with one entry, an empty list, a
short text or a float in a list, a name in a dictionary. tests/unit/safewriter/test_bounds.py measures it.
"""
_WIDEST_BYTES: Final = 4
"""What Python takes for each character of a text with one that is far from ASCII."""


def space_bytes(text: str | bytes) -> int:
    """Return how many bytes of memory the values of a JSON text take at most, before anything is parsed.

    A text of nothing but `{},` takes thirty times its length, a table's log five times.
    """
    each = 1 if text.isascii() else _WIDEST_BYTES
    if isinstance(text, str):
        return each * len(text) + sum(text.count(mark) * size for mark, size in _SPACE_BYTES)
    return each * len(text) + sum(text.count(mark.encode()) * size for mark, size in _SPACE_BYTES)


def whole(value: object) -> int:
    """Return a number of JSON that a `long` of Java can be; `ValueError` for any other, and for what is none."""
    if not isinstance(value, int) or isinstance(value, bool) or not -_LONG_MAX <= value <= _LONG_MAX:
        raise ValueError("is not a whole number of 64 bits")
    return value
