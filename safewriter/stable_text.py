"""The text of a value that is the same in every process, by which two attempts can tell whether they mean the same."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from numbers import Integral
from pathlib import PurePath
from typing import Any, Final
from uuid import UUID

__all__ = ["stable_text"]

_PLAIN: Final = (str, bytes, float, complex)
_BY_TEXT: Final = (date, time, timedelta, Decimal, Fraction, UUID, PurePath)
"""Their `str` is the whole value."""


def stable_text(value: object) -> str:
    """Return the text; `ValueError` for a value that has none: an object may show its place in memory, and a frame
    shows its columns and not its rows.
    """
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, Integral):  # also NumPy's, whose own text has changed
        return repr(int(value))
    for kind in _PLAIN:
        if isinstance(value, kind):
            return kind.__repr__(value)
    if isinstance(value, Enum):
        return f"{type(value).__qualname__}.{value.name}"
    if isinstance(value, _BY_TEXT):
        return f"{type(value).__name__}({str(value)!r})"
    return _of_many(value)


def _of_many(value: Any) -> str:  # noqa: ANN401 - whatever a script has made
    if isinstance(value, range):
        return repr(value)
    if isinstance(value, (list, tuple)):  # as JSON, which a script may have read it from, knows no tuples
        return f"[{', '.join(map(stable_text, value))}]"
    if isinstance(value, AbstractSet):
        return f"{{{', '.join(sorted(map(stable_text, value)))}}}"
    if isinstance(value, Mapping):
        pairs = sorted(f"{stable_text(key)}: {stable_text(item)}" for key, item in value.items())
        return f"{{{', '.join(pairs)}}}"
    if is_dataclass(value) and not isinstance(value, type):
        texts = (f"{field.name}={stable_text(getattr(value, field.name))}" for field in fields(value))
        return f"{type(value).__qualname__}({', '.join(texts)})"
    raise ValueError(f"a {type(value).__qualname__} has no text that is the same on each attempt")
