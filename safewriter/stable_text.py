"""A text of a value that is the same in every process, so that two attempts can compare their values."""

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
    """Return the text; raise `ValueError` for a value that has none: the `repr` of an object may show its memory
    address, and that of a frame shows columns but no rows.
    """
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, Integral):  # also NumPy's, whose `repr` has changed
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
    if isinstance(value, (list, tuple)):  # alike: a script may read them from JSON, which has no tuples
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
