"""Check how deeply a JSON value from outside is nested: at some depth Python's functions raise a RecursionError."""

from __future__ import annotations

from typing import Final

from handler.input_errors import InputError

__all__ = ["check_nesting", "is_too_deep"]

_DEPTH_MAX: Final = 100


def is_too_deep(value: object) -> bool:
    """Tell whether lists and objects in a value are nested more deeply than anybody means."""
    level = [value]
    for _ in range(_DEPTH_MAX + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


def check_nesting(event: object) -> None:
    """Raise `InputError` for an event that cannot be checked, written or shown."""
    if is_too_deep(event):
        raise InputError("event", f"holds more than {_DEPTH_MAX} lists or objects in one another; make it flatter")
