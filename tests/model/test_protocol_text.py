from __future__ import annotations

from pathlib import Path

import pytest

from tests.model.iceberg import scenarios as iceberg
from tests.model.iceberg.rules import IcebergRule
from tests.model.rules import Rule
from tests.model.scenarios import COUNTEREXAMPLES, NEEDED_TOGETHER, NOT_NEEDED

ROWS = {
    cells[0].strip("`"): cells[1:]
    for line in (Path(__file__).parents[2] / "docs" / "concepts" / "protocol.md")
    .read_text(encoding="utf-8")
    .splitlines()
    if len(cells := [cell.strip() for cell in line.strip("|").split("|")]) == 3
}


@pytest.mark.parametrize("rule", Rule, ids=lambda rule: rule.name.lower())
def test_the_protocol_says_what_each_rule_prevents(rule: Rule) -> None:
    """The document names the rule, says it in the model's words, and shows what the search has found without it."""
    says, without = ROWS[rule.name.lower()]
    other, found = next((([pair[1]], found) for pair, found in NEEDED_TOGETHER.items() if pair[0] is rule), ([], None))

    assert says == rule.value
    for companion in other:
        assert f"`{companion.name.lower()}`" in without
    assert told(NOT_NEEDED.get(rule) or (found or COUNTEREXAMPLES[rule])[1]) in without


@pytest.mark.parametrize("rule", IcebergRule, ids=lambda rule: rule.name.lower())
def test_the_protocol_says_what_each_rule_of_iceberg_prevents(rule: IcebergRule) -> None:
    """As above; each has a counterexample of its own."""
    says, without = ROWS[rule.name.lower()]

    assert says == rule.value
    assert without == told(iceberg.COUNTEREXAMPLES[rule][1])


def told(violation: str) -> str:
    """Return a broken promise in the document's words."""
    return violation.removeprefix("with a retry: ").replace("1 healthy retries do not", "one healthy retry does not")
