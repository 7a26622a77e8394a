"""Leave out of a failing schedule whatever it also fails without: halves, then smaller pieces (Zeller's ddmin)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.campaign.schedules.plan import Plan

__all__ = ["shrunk"]

_TRIES_MAX: Final = 400


def shrunk(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    """Return a failing schedule that does not fail without any single one of its parts, or the best of 400 tries."""
    size, tries, begin = max(1, len(_left(plan)) // 2), 0, 0
    gone = False
    while tries < _TRIES_MAX:
        left = _left(plan)
        if begin >= len(left):
            if size == 1 and not gone:
                break
            size, begin, gone = max(1, size // 2), 0, False
            continue
        tries += 1
        candidate = plan.leaving_out(left[begin : begin + size])
        if fails(candidate):
            plan, gone = candidate, True
        else:
            begin += size
    return plan


def _left(plan: Plan) -> list[int]:
    """Return the numbers of the parts that are there: those of a member that is left out are not."""
    members = {one.name for one in plan.members}
    return [number for number, part in enumerate(plan.parts) if number not in plan.without and part[0] in members]
