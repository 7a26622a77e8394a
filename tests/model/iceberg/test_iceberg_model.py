"""The search of the protocol's model on Iceberg: promises hold, and each rule has a counterexample without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.model.iceberg.model import IcebergModel
from tests.model.iceberg.rules import IcebergRule
from tests.model.iceberg.scenarios import COUNTEREXAMPLES, SCENARIOS, scenario
from tests.model.scenarios import both_commit_points, without
from tests.model.searching import search

if TYPE_CHECKING:
    from tests.model.iceberg.setting import IcebergSetting


@pytest.mark.parametrize(("name", "setting"), [pytest.param(*one, id=one[0]) for one in both_commit_points(SCENARIOS)])
def test_no_promise_can_be_broken(name: str, setting: IcebergSetting) -> None:
    """The search checks every state of the scenario, with every rule in force."""
    assert search(IcebergModel(setting)) is None


@pytest.mark.parametrize(
    ("rule", "name", "violation"),
    [pytest.param(rule, *found, id=rule.name.lower()) for rule, found in COUNTEREXAMPLES.items()],
)
def test_each_rule_prevents_something(rule: IcebergRule, name: str, violation: str) -> None:
    """Without the rule a promise is broken, and the search finds how."""
    assert search(IcebergModel(without(scenario(name), rule))) == violation


def test_every_rule_is_accounted_for() -> None:
    """Each has a counterexample; none is kept without one."""
    assert set(COUNTEREXAMPLES) == set(IcebergRule)
