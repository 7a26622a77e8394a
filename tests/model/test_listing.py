"""`scripts/model --rules` lists every rule of the models (Delta, Iceberg, turns)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.model import __main__ as program
from tests.model.coordination.rules import TurnRule
from tests.model.iceberg.rules import IcebergRule
from tests.model.rules import Rule

if TYPE_CHECKING:
    import pytest


def test_the_list_has_every_rule_and_what_breaks_without_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each has one line, with its text and the promise that a search finds broken."""
    monkeypatch.setattr(sys, "argv", ["scripts/model", "--rules"])
    assert program.main() == 0
    lines = capsys.readouterr().out.splitlines()
    told = [f"{rule.name.lower()}: {rule.value}. Without it: " for rule in (*Rule, *IcebergRule, *TurnRule)]
    assert len(lines) == len(told)
    assert all(line.startswith(start) and len(line) > len(start) + 1 for line, start in zip(lines, told, strict=True))
