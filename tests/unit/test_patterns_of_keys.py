"""A key may hold any character: the patterns of the rooms that read keys know line ends."""

from __future__ import annotations

import importlib
import pkgutil
import re
from typing import TYPE_CHECKING, Any

import pytest

import safewriter
import soal.orphans

if TYPE_CHECKING:
    from collections.abc import Iterator

OF_OTHER_TEXTS = {
    ("safewriter.objects.conditions", "_AWS"),
    ("safewriter.tables.delta.gate", "_MESSAGE"),
}
"""Patterns for a host, and for one line of a text."""
_PARSER = importlib.import_module("re._parser")


def patterns() -> Iterator[tuple[str, str, re.Pattern[str]]]:
    for package in (safewriter, soal.orphans):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for name, value in vars(importlib.import_module(module.name)).items():
                if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                    yield module.name, name, value


def has_dot(parsed: Any) -> bool:
    """Return whether a parsed pattern holds a dot that stands for any character."""
    if isinstance(parsed, (list, tuple, _PARSER.SubPattern)):
        return any(map(has_dot, parsed))
    return str(parsed) == "ANY"


FOUND = [found for found in patterns() if found[:2] not in OF_OTHER_TEXTS and has_dot(_PARSER.parse(found[2].pattern))]


@pytest.mark.parametrize(("module", "name", "pattern"), FOUND, ids=[f"{one[0]}.{one[1]}" for one in FOUND])
def test_a_dot_of_a_pattern_stands_for_a_line_end_too(module: str, name: str, pattern: re.Pattern[str]) -> None:
    """Without it the key of a folder whose name holds a line end is taken for no key of that folder."""
    assert pattern.flags & re.DOTALL, f"{module}.{name} needs re.DOTALL"
