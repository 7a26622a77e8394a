"""`soal orphans` parses an age with its unit, and takes less than nine hours only with permission."""

from __future__ import annotations

from datetime import timedelta

import pytest

from soal.console.problem import Problem
from soal.orphans.age import parse_age


@pytest.mark.parametrize(
    ("text", "age"),
    [
        ("7d", timedelta(days=7)),
        ("36h", timedelta(hours=36)),
        ("540m", timedelta(hours=9)),
        (" 9h ", timedelta(hours=9)),
    ],
)
def test_an_age_has_a_unit(text: str, age: timedelta) -> None:
    """An age is a number of days, hours or minutes; a number without a unit is ambiguous."""
    assert parse_age(text, allow_young=False) == age


@pytest.mark.parametrize("text", ["", "7", "d", "-1d", "1.5h", "7 days", "9999999d"])
def test_anything_else_is_no_age(text: str) -> None:
    """Any other text is refused before anything is read."""
    with pytest.raises(Problem, match="is not an age"):
        parse_age(text, allow_young=False)


@pytest.mark.parametrize("text", ["8h", "539m", "0d"])
def test_less_than_nine_hours_must_be_allowed_by_name(text: str) -> None:
    """A shorter age must be allowed: files of a run of eight hours may have it."""
    with pytest.raises(Problem, match="less than nine hours") as refused:
        parse_age(text, allow_young=False)
    assert "--allow-young" in refused.value.todo
    assert parse_age(text, allow_young=True) < timedelta(hours=9)
