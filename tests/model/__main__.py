"""Searches the wide scenarios to their end, or one scenario with rules taken away: `scripts/model --help`."""

from __future__ import annotations

import argparse
import sys
import time

from tests.model.engine import explore
from tests.model.model import Model
from tests.model.rules import Rule
from tests.model.scenarios import SCENARIOS, WIDE, both_commit_points, without


def main() -> int:
    """Return 0 if no promise can be broken and every search came to its end."""
    parser = argparse.ArgumentParser(prog="scripts/model", description=__doc__)
    parser.add_argument("--scenario", help="part of a scenario's name; default: all wide ones")
    parser.add_argument(
        "--without", nargs="*", default=[], choices=[rule.name.lower() for rule in Rule], metavar="RULE"
    )
    parser.add_argument("--states-max", type=int, default=3_000_000)
    parser.add_argument("--rules", action="store_true", help="only list the rules")
    options = parser.parse_args()
    if options.rules:
        print("\n".join(f"{rule.name.lower():<24}{rule.value}" for rule in Rule))  # noqa: T201 - a command line
        return 0
    wanted = WIDE if options.scenario is None else {**WIDE, **SCENARIOS}
    good = True
    for name, setting in both_commit_points(wanted):
        if options.scenario is not None and options.scenario not in name:
            continue
        begun = time.monotonic()
        found = explore(
            Model(without(setting, *(Rule[name.upper()] for name in options.without))), states_max=options.states_max
        )
        good &= found.complete
        end = "complete" if found.complete else "" if found.counterexample else "STOPPED"
        row = f"{name:<56} {found.states:>9,} states {time.monotonic() - begun:6.1f} s  {end}"
        print(row, found.counterexample or "", flush=True)  # noqa: T201 - a command line
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
