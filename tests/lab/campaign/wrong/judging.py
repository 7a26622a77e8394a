"""The rule of the tier: a script ends with its rows in the table, or with an error and all or none of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.lab.campaign.record import Violation
    from tests.lab.campaign.wrong.script import Ids, Script

__all__ = ["SUCCESS", "Told", "violations_of"]

SUCCESS = "SUCCESS"


@dataclass(frozen=True, slots=True)
class Told:
    """The result of one attempt, and the rows of its tables afterwards.

    `state`: the handler's word for the attempt. `verdict`: that of the run's only write, else None. `is_incomplete`:
    the document says that the table does not hold what the verdict alone would mean.
    """

    state: str
    found: Ids
    verdict: str | None = None
    is_incomplete: bool = False
    others: Mapping[str, Ids] | None = None


def violations_of(script: Script, attempts: Sequence[Told]) -> list[Violation]:
    """Return the broken promises of a run, each once."""
    return list(dict.fromkeys(_violations(script, attempts)))


def _violations(script: Script, attempts: Sequence[Told]) -> Iterator[Violation]:
    for number, told in enumerate(attempts, 1):
        if told.state != SUCCESS and number in script.succeeds:
            yield "refused"
        allowed = (script.after,) if told.state == SUCCESS else (script.before, script.after, *script.parts)
        if told.found not in allowed:
            yield from _wrong_rows(script, told, allowed)
        elif _contradicts(script, told):
            yield "wrong_verdict"
    if attempts[-1].state == SUCCESS and (attempts[-1].others or {}) != script.others:
        yield "other_rows"
    rows = [told.found for told in attempts]
    if any(earlier == script.after != later for earlier, later in pairwise(rows)):
        yield "changed"


def _wrong_rows(script: Script, told: Told, allowed: Sequence[Ids]) -> Iterator[Violation]:
    """Yield what is wrong with rows that differ from all allowed ones."""
    found = Counter(told.found)
    most = Counter[int]()
    for ids in allowed:
        most |= Counter(ids)
    if found - most:
        yield "doubled"
    if told.state == SUCCESS and Counter(script.after) - found:
        yield "lost"
    elif told.state != SUCCESS and not found - most:
        yield "gap"


def _contradicts(script: Script, told: Told) -> bool:
    """Return whether the only write's verdict contradicts the table; an incomplete write never does."""
    if (
        script.before == script.after
        or script.is_foreign
        or told.is_incomplete
        or told.verdict not in ("committed", "rolled_back")
    ):
        return False
    return (told.verdict == "committed") is (told.found == script.before)
