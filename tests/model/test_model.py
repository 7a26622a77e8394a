"""The search of the protocol's model on Delta: promises hold, and each rule has a counterexample or a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.model.model import Model
from tests.model.rules import Rule
from tests.model.scenarios import (
    COUNTEREXAMPLES,
    NEEDED_TOGETHER,
    NOT_NEEDED,
    SCENARIOS,
    both_commit_points,
    scenario,
    without,
)
from tests.model.searching import search

if TYPE_CHECKING:
    from tests.model.setting import Setting


@pytest.mark.parametrize(("name", "setting"), [pytest.param(*one, id=one[0]) for one in both_commit_points(SCENARIOS)])
def test_no_promise_can_be_broken(name: str, setting: Setting) -> None:
    """The search checks every state of the scenario, with every rule in force."""
    assert search(Model(setting)) is None


@pytest.mark.parametrize(
    ("rule", "name", "violation"),
    [pytest.param(rule, *found, id=rule.name.lower()) for rule, found in COUNTEREXAMPLES.items()],
)
def test_each_rule_prevents_something(rule: Rule, name: str, violation: str) -> None:
    """Without the rule a promise is broken, and the search finds how."""
    assert search(Model(without(scenario(name), rule))) == violation


@pytest.mark.parametrize(
    ("first", "second", "name", "violation"),
    [pytest.param(*rules, *found, id=rules[0].name.lower()) for rules, found in NEEDED_TOGETHER.items()],
)
def test_what_one_rule_misses_another_prevents(first: Rule, second: Rule, name: str, violation: str) -> None:
    """Without the first rule no promise breaks while the second holds; without both one does."""
    assert search(Model(without(scenario(name), first))) is None
    assert search(Model(without(scenario(name), first, second))) == violation


@pytest.mark.parametrize("rule", NOT_NEEDED, ids=lambda rule: rule.name.lower())
@pytest.mark.parametrize("name", ["stands still beyond its grace", "supervised", "two attempts", "new table"])
def test_a_rule_of_politeness_is_not_needed(rule: Rule, name: str) -> None:
    """If this fails, the rule belongs to the counterexamples."""
    assert search(Model(without(scenario(name), rule))) is None


def test_every_rule_is_accounted_for() -> None:
    """Each has a counterexample, alone or with a second rule, or a reason why it needs none."""
    alone, together = set(COUNTEREXAMPLES), {rules[0] for rules in NEEDED_TOGETHER}

    assert alone | together | set(NOT_NEEDED) == set(Rule)
    assert not alone & together
    assert not (alone | together) & set(NOT_NEEDED)
