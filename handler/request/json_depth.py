"""Check the nesting of a JSON value from outside: at some depth Python's functions raise a RecursionError."""

from __future__ import annotations

from typing import Final

from handler.input_errors import InputError

__all__ = ["check_nesting", "is_too_deep"]

_DEPTH_MAX: Final = 100


def is_too_deep(value: object) -> bool:
    """Return whether lists and objects in a value are nested more deeply than any sensible input."""
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
    """Raise `InputError` for an event too deep to be checked, serialised or shown."""
    if is_too_deep(event):
        raise InputError("event", f"holds more than {_DEPTH_MAX} lists or objects in one another; make it flatter")
