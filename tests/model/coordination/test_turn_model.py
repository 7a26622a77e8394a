"""The search of the model of turns at a lock: every promise holds, and each rule has a counterexample without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.model.coordination.model import TurnModel
from tests.model.coordination.progress import search
from tests.model.coordination.rules import TurnRule
from tests.model.coordination.scenarios import COUNTEREXAMPLES, SCENARIOS, WIDE, without

if TYPE_CHECKING:
    from tests.model.coordination.setting import Setting

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("setting", [pytest.param(one, id=name) for name, one in SCENARIOS.items()])
def test_no_promise_can_be_broken(setting: Setting) -> None:
    """In every state; and from each, a job that may run can still get its turn."""
    states, broken = search(TurnModel(setting))
    assert broken is None
    assert states > 10


@pytest.mark.parametrize(
    ("rule", "name", "violation"),
    [pytest.param(rule, *found, id=rule.name.lower()) for rule, found in COUNTEREXAMPLES.items()],
)
def test_each_rule_prevents_something(rule: TurnRule, name: str, violation: str) -> None:
    """Without the rule a promise is broken, and the search finds how."""
    assert search(TurnModel(without({**SCENARIOS, **WIDE}[name], rule)))[1] == violation


def test_every_rule_is_accounted_for() -> None:
    """Each has a counterexample; none is kept without one."""
    assert set(COUNTEREXAMPLES) == set(TurnRule)
