"""docs/concepts/verdicts.md names each place in the code that returns a verdict, and no other."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = ROOT / "docs" / "concepts" / "verdicts.md"
VERDICTS: Final = {"COMMITTED": "committed", "ROLLED_BACK": "rolled_back", "UNKNOWN": "unknown"}
MAKERS: Final = {"Move", "_report", "document", "moved"}
"""The calls that give a write a status: a format's move, the supervisor's report, a document's first or next state."""


def given() -> Iterator[tuple[str, str, str]]:
    """Yield file, function and verdict of each call that gives one."""
    for path in sorted((ROOT / "safewriter").rglob("*.py")):
        name = path.relative_to(ROOT / "safewriter").as_posix()
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef):
                yield from ((name, function.name, verdict) for verdict in _verdicts(function))


def _verdicts(function: ast.FunctionDef) -> Iterator[str]:
    for call in ast.walk(function):
        if not isinstance(call, ast.Call):
            continue
        called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if called not in MAKERS:
            continue
        for argument in call.args:
            if isinstance(argument, ast.Attribute) and getattr(argument.value, "id", "") == "Status":
                yield from (VERDICTS[argument.attr] for _ in (1,) if argument.attr in VERDICTS)


def listed() -> Iterator[tuple[str, str, str]]:
    """Yield the same from the table on the page."""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) != 4 or not (verdict := re.match(r"[a-z_]+", cells[0])) or "`" not in cells[3]:
            continue
        file = ""
        for code in re.findall(r"`([^`]+)`", cells[3]):
            file, found = (code.split(" ")[0], "") if code.endswith(".py") else (file, code)
            if found:
                yield file, found, verdict[0]


def test_every_verdict_of_the_code_has_its_witness_on_the_page() -> None:
    """A new place that returns a verdict must name its witness."""
    assert set(given()) == set(listed())


def test_every_row_of_the_page_names_a_witness() -> None:
    """A verdict without a witness is none."""
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ") and ".py`" in line]
    assert len(rows) >= 12
    assert all(row.split("|")[2].strip() for row in rows)
