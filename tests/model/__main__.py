"""Search the wide scenarios to their end, or one scenario without some rules: `scripts/model --help`."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Final

from tests.model import scenarios
from tests.model.coordination import scenarios as coordination
from tests.model.coordination.model import TurnModel
from tests.model.coordination.progress import search
from tests.model.coordination.rules import TurnRule
from tests.model.engine import explore
from tests.model.iceberg import scenarios as iceberg
from tests.model.iceberg.model import IcebergModel
from tests.model.iceberg.rules import IcebergRule
from tests.model.iceberg.setting import IcebergSetting
from tests.model.model import Model
from tests.model.rules import Rule
from tests.model.scenarios import both_commit_points, without

if TYPE_CHECKING:
    from collections.abc import Iterator
    from enum import Enum

    from tests.model.setting import Setting

_RULES: Final[dict[str, Enum]] = {rule.name.lower(): rule for rule in (*Rule, *IcebergRule, *TurnRule)}
_WIDE: Final[dict[str, Setting]] = {**scenarios.WIDE, **iceberg.WIDE}
_ALL: Final[dict[str, Setting]] = {**_WIDE, **scenarios.SCENARIOS, **iceberg.SCENARIOS}


def _model(setting: Setting) -> Model:
    return IcebergModel(setting) if isinstance(setting, IcebergSetting) else Model(setting)


def main() -> int:
    """Return 0 if no search finds a broken promise and every search is complete."""
    parser = argparse.ArgumentParser(prog="scripts/model", description=__doc__)
    parser.add_argument("--scenario", help="part of a scenario's name; default: all wide ones")
    parser.add_argument("--without", nargs="*", default=[], choices=_RULES, metavar="RULE")
    parser.add_argument("--states-max", type=int, default=3_000_000)
    parser.add_argument("--rules", action="store_true", help="only list the rules, and what breaks without each")
    options = parser.parse_args()
    if options.rules:
        print("\n".join(_listed()))  # noqa: T201 - a command line
        return 0
    wanted = _WIDE if options.scenario is None else _ALL
    good = True
    for name, setting in both_commit_points(wanted):
        if options.scenario is not None and options.scenario not in name:
            continue
        begun = time.monotonic()
        found = explore(
            _model(without(setting, *(_RULES[name] for name in options.without))), states_max=options.states_max
        )
        good &= found.complete
        end = "complete" if found.complete else "" if found.counterexample else "STOPPED"
        row = f"{name:<56} {found.states:>9,} states {time.monotonic() - begun:6.1f} s  {end}"
        print(row, found.counterexample or "", flush=True)  # noqa: T201 - a command line
    return 0 if _turns(options) and good else 1


def _listed() -> Iterator[str]:
    """Yield a line for each rule: its text, and what a search finds without it."""
    broken: dict[Enum, str] = {
        rule: f"{promise.removeprefix('with a retry: ')} ({name})"
        for found in (scenarios.COUNTEREXAMPLES, iceberg.COUNTEREXAMPLES, coordination.COUNTEREXAMPLES)
        for rule, (name, promise) in found.items()
    }
    for (rule, other), (name, promise) in scenarios.NEEDED_TOGETHER.items():
        broken[rule] = f"nothing breaks while {other.name.lower()} holds; without both: {promise} ({name})"
    broken |= {rule: f"nothing breaks: {reason}" for rule, reason in scenarios.NOT_NEEDED.items()}
    for name, listed in _RULES.items():
        yield f"{name}: {listed.value}. Without it: {broken[listed]}."


def _turns(options: argparse.Namespace) -> bool:
    """Search the scenarios of turns; return whether no promise was broken."""
    wanted = coordination.WIDE if options.scenario is None else {**coordination.WIDE, **coordination.SCENARIOS}
    rules = [_RULES[name] for name in options.without]
    good = True
    for name, setting in wanted.items():
        if options.scenario is None or options.scenario in name:
            model = TurnModel(coordination.without(setting, *(rule for rule in rules if isinstance(rule, TurnRule))))
            states, broken = search(model, options.states_max)
            print(f"turns: {name:<49} {states:>9,} states", broken or "", flush=True)  # noqa: T201 - as above
            good &= broken is None
    return good


if __name__ == "__main__":
    sys.exit(main())
