"""Decide which promises a case has broken."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.lab.campaign.record import Violation

__all__ = ["UNCLAIMED", "Seen", "violations_of"]

UNCLAIMED: Final = "unclaimed"
"""In place of a verdict: the write has no document, so the guard has promised nothing."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a case: ids before, expected after, found after recovery, and at the very end.

    `acknowledged`: before the recovery; `thawed`: after the retry. `changed`: something late has changed the table or
    its document after the verdict.
    """

    guarded: bool = False
    acknowledged: bool = False
    thawed: bool = False
    verdict: str | None = None
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    found: tuple[int, ...] = ()
    found_at_end: tuple[int, ...] = ()
    retry_succeeded: bool = False
    changed: bool = False
    orphans: int = 0
    harness_failed: bool = False

    @property
    def landed(self) -> bool | None:
        """Whether the rows were there after recovery; None if the table equals neither state."""
        return None if self.harness_failed else {self.after: True, self.before: False}.get(self.found)


def _holds(seen: Seen) -> bool:
    return not Counter(seen.after) - Counter(seen.found_at_end)


def violations_of(seen: Seen) -> list[Violation]:
    """Return the broken promises. An unguarded write has the same ones, except the verdict."""
    if seen.harness_failed:
        return ["harness_error"]
    settled = not seen.guarded or seen.verdict in ("committed", "rolled_back", UNCLAIMED)
    told: bool | None = seen.verdict == "committed" if seen.guarded else seen.landed
    broken: dict[Violation, bool] = {
        "lost": seen.acknowledged and not (_holds(seen) if seen.thawed else seen.landed),
        "unacknowledged": seen.landed is True and not seen.acknowledged and seen.verdict != "committed",
        "doubled": bool(Counter(seen.found_at_end) - Counter(seen.after)),
        "gap": not _holds(seen),
        "wrong_verdict": settled and (seen.landed is None or told is not seen.landed),
        "unknown": not settled,
        "changed": seen.changed,
        "orphans": seen.orphans > 0,
        "retry_failed": not seen.retry_succeeded,
    }
    return [name for name, holds in broken.items() if holds]
