from __future__ import annotations

import pytest
from pydantic import BaseModel, ConfigDict

from handler.usage import UsageError, found, validated


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    names: tuple[str, ...] = ()


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    inner: Inner


def test_the_path_is_written_as_in_the_event() -> None:
    """Fields with dots, places in lists in brackets, below the given prefix."""
    with pytest.raises(UsageError) as caught:
        validated(Outer, {"inner": {"names": ("a", 1)}}, prefix="Records[0].body")
    assert str(caught.value) == "Records[0].body.inner.names[1]: must be a string, not 1"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({}, "inner: is missing; add it"),
        ({"inner": {}, "x": 1}, "x: is not a known field; remove it or correct its name"),
        ({"inner": 3}, "inner: must be an object, not 3"),
        ([], "event: must be an object, not []"),
    ],
)
def test_plain_words(data: object, text: str) -> None:
    """None of them is pydantic's."""
    with pytest.raises(UsageError) as caught:
        validated(Outer, data)
    assert str(caught.value) == text


def test_what_was_found_is_shown_short_and_masked() -> None:
    """On one line."""
    assert found("a\nb") == "'a\\nb'"
    assert len(found("x" * 1000)) < 100
    assert "hunter22" not in found({"password": "hunter22"})


def test_a_name_from_outside_cannot_break_the_line() -> None:
    """Control characters and half surrogates are shown as escapes, and an endless name is cut."""
    error = UsageError("a\nb\ud800", "p" * 5000)
    assert error.field == "a\\nb\\ud800"
    assert str(error).isprintable()
    assert len(str(error)) < 1100
