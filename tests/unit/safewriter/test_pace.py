"""The expected time of a long write's next part."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

import pytest

from safewriter.pace import Pace
from safewriter.record.document import Status
from safewriter.settle.recovery import Cause
from tests.unit.safewriter.record.samples import attempt, document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from safewriter.record.document import Checkpoint


def committed(run_id: str, settled_ms: int | None, by: Cause = Cause.SUCCESS, *, claimed_ms: int = 0) -> Checkpoint:
    """A part that an attempt has committed."""
    ended = replace(attempt(), run_id=run_id, started_ms=claimed_ms, settled_ms=settled_ms, settled_by=by.value)
    return document(Status.COMMITTED, attempts=(ended,))


def pace_of(earlier: Sequence[Checkpoint], *taken_s: float) -> Pace:
    pace = Pace()
    pace.learn(earlier)
    for seconds in taken_s:
        pace.took(seconds)
    return pace


def test_an_attempt_s_first_part_is_always_begun() -> None:
    """Else a run whose parts take longer than an attempt would stand still without a word."""
    earlier = [committed("a", 0), committed("a", 900_000)]
    assert pace_of([]).wanted_s is None
    assert pace_of(earlier).wanted_s is None


@pytest.mark.parametrize(
    ("taken_s", "wanted_s"),
    [
        ((50.0,), 60.0),  # nothing else is known
        ((50.0, 10.0), 12.0),
        ((50.0, 10.0, 30.0), 24.0),
        ((50.0, 10.0, 10.0, 10.0, 90.0, 90.0), 12.0),
        ((50.0, 90.0, 90.0, 90.0, 10.0, 10.0, 10.0), 12.0),  # the last five
    ],
)
def test_the_median_of_the_last_parts_counts_and_the_first_only_alone(
    taken_s: tuple[float, ...], wanted_s: float
) -> None:
    """One part with a pause does not end an attempt whose other parts fit."""
    assert pace_of([], *taken_s).wanted_s == pytest.approx(wanted_s)


def test_an_attempt_knows_the_pace_of_earlier_ones_after_its_first_part() -> None:
    """In any order of the documents, also if the attempts' clocks differ. The time between two attempts is no pace."""
    earlier = [
        committed("b", 940_000, claimed_ms=915_000),
        committed("a", 10_000, claimed_ms=4_000),
        committed("b", 900_000, claimed_ms=830_000),
        committed("a", 30_000, claimed_ms=11_000),
    ]
    assert pace_of(earlier, 50.0).wanted_s == pytest.approx(1.2 * median([20, 40]))
    assert pace_of([*earlier, committed("a", 905_000)], 50.0).wanted_s == pytest.approx(1.2 * 40)


def test_five_attempts_that_begin_one_part_each_tell_that_parts_have_become_faster() -> None:
    """Else one long part, or a function with too little memory, would let each later attempt begin one part only."""
    slow = [committed("slow", number * 700_000) for number in range(6)]
    fast = [
        committed(f"fast {number}", end_ms, claimed_ms=end_ms - 10_000)
        for number in range(5)
        for end_ms in (5_000_000 + number * 60_000,)
    ]
    assert pace_of([*slow, *fast[:4]], 10.0).wanted_s == pytest.approx(1.2 * 700)
    assert pace_of([*slow, *fast], 10.0).wanted_s == pytest.approx(1.2 * 10)


def test_a_first_part_of_earlier_took_no_less_than_this_attempt_s() -> None:
    """Its document has the moment of the claim; a script may have read for minutes before."""
    assert pace_of([committed("a", 2_000)], 100.0).wanted_s == pytest.approx(120)
    assert pace_of([committed("a", 200_000)], 100.0).wanted_s == pytest.approx(240)


def test_a_part_that_ended_before_it_began_tells_nothing() -> None:
    """Somebody has set the clock back, or changed the document."""
    assert pace_of([committed("a", 10_000, claimed_ms=90_000)], 50.0).wanted_s == pytest.approx(60)


def test_the_own_parts_replace_those_of_earlier_attempts() -> None:
    """The function may have got more memory."""
    earlier = [committed("a", number * 90_000) for number in range(9)]
    assert pace_of(earlier, 50.0, 10.0, 10.0).wanted_s == pytest.approx(1.2 * 90)
    assert pace_of(earlier, 50.0, 10.0, 10.0, 10.0).wanted_s == pytest.approx(12)


def test_only_a_verdict_of_success_tells_when_a_part_ended() -> None:
    """A settler's comes later, and an old document has no time."""
    earlier = [committed("a", 90_000, Cause.SWEEPER), committed("a", None)]
    open_one = document(Status.IN_PROGRESS, attempts=(replace(attempt(), run_id="a", settled_ms=50_000),))
    assert pace_of([*earlier, open_one], 50.0).wanted_s == pytest.approx(60)
