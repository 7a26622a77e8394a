"""`soal orphans` parses an age with its unit, and takes less than an hour only with permission."""

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
        ("60m", timedelta(hours=1)),
        (" 1h ", timedelta(hours=1)),
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


@pytest.mark.parametrize("text", ["59m", "0d"])
def test_less_than_an_hour_must_be_allowed_by_name(text: str) -> None:
    """An age below an hour must be allowed: files of a running write have that age."""
    with pytest.raises(Problem, match="less than an hour") as refused:
        parse_age(text, allow_young=False)
    assert "--allow-young" in refused.value.todo
    assert parse_age(text, allow_young=True) < timedelta(hours=1)
