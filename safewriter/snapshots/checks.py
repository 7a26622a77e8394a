"""Checks of settings by their types: a mistyped one is refused where it is given, and by its name."""

from __future__ import annotations

import math
from types import NoneType
from typing import TYPE_CHECKING, TypeVar

from safewriter.bounds import LONG_MAX, short
from safewriter.snapshots.errors import ConfigValidationError

if TYPE_CHECKING:
    from enum import StrEnum

    _Choice = TypeVar("_Choice", bound=StrEnum)

__all__ = ["check_count", "check_number", "check_type", "chosen"]


def check_count(name: str, value: object, *, at_least: int = 1) -> None:
    """Raise `ConfigValidationError` unless the value is an integer of at least this, and of 64 bits."""
    if not isinstance(value, int) or isinstance(value, bool) or not at_least <= value <= LONG_MAX:
        raise ConfigValidationError(f"{name} is {short(value)}; it must be an integer, {at_least} or more")


def check_number(name: str, value: object, *, at_least: float = 0, above: float = -math.inf) -> None:
    """Raise `ConfigValidationError` unless the value is a finite number of at least this, and above that."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number and math.isfinite(value) and value >= at_least and value > above):  # type: ignore[arg-type, operator]
        limit = f"more than {above:g}" if above >= at_least else f"{at_least:g} or more"
        raise ConfigValidationError(f"{name} is {short(value)}; it must be a number, {limit}")


def check_type(name: str, value: object, *kinds: type) -> None:
    """Raise `ConfigValidationError` unless the value is of one of these types."""
    if not isinstance(value, kinds):
        names = ("None" if kind is NoneType else kind.__name__ for kind in kinds)
        raise ConfigValidationError(f"{name} is {short(value)}; it must be of the type {' or '.join(names)}")


def chosen(name: str, value: str, choices: type[_Choice]) -> _Choice:
    """Return the choice that a member or its text names. Raises `ConfigValidationError`."""
    try:
        return choices(value)
    except ValueError:
        raise ConfigValidationError(f"{name} is {short(value)}, none of {', '.join(choices)}") from None
