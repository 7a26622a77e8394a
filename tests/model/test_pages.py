"""The documents' pages of rules list every rule of the models (Delta, Iceberg, turns) once, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from tests.model.coordination.rules import TurnRule
from tests.model.iceberg.rules import IcebergRule
from tests.model.rules import Rule

CONCEPTS = Path(__file__).parents[2] / "docs" / "concepts"


def listed(page: str) -> list[str]:
    """Return the rules that a page lists with a sentence and a *Without it*."""
    items = re.split(r"^(?=- |#|\n)", (CONCEPTS / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    rules = re.compile(r"- `([a-z_]+)`: .+\*Without\s+it\*.+", re.DOTALL)
    return [found[1] for item in items if (found := rules.match(item))]


def test_the_page_of_rules_lists_every_rule_of_the_model() -> None:
    """Each once, with its *Without it*, and no rule that the model does not have."""
    assert sorted(listed("rules.md")) == sorted(rule.name.lower() for rule in Rule)


def test_the_page_of_iceberg_lists_every_rule_of_its_model() -> None:
    """Each once, with its *Without it*, and no rule that the model of Iceberg does not have."""
    assert sorted(listed("iceberg.md")) == sorted(rule.name.lower() for rule in IcebergRule)


def test_the_page_of_turns_lists_every_rule_of_its_model() -> None:
    """Each once, with its *Without it*, and no rule that the model of turns does not have."""
    assert sorted(listed("coordination.md")) == sorted(rule.name.lower() for rule in TurnRule)
