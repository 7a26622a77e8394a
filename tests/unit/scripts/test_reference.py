"""The generated parts of the reference pages show each field's meaning, values and default, or fail."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from scripts.reference import described, filled


class Told(BaseModel):
    name: str
    """how it is called."""
    size_mb: Annotated[int, Field(ge=1, le=9)] | None = 3
    """Its size."""
    mode: Literal["a", "b"] = Field(default="a", description="which of two")


class Untold(BaseModel):
    name: str


def test_a_field_is_shown_with_meaning_values_and_default() -> None:
    """The meaning is the field's description, or the docstring below it."""
    assert list(described(Told)) == [
        "`name`\n: How it is called. *(text; required)*",
        "`size_mb`\n: Its size. *(whole number, 1 to 9; default `3`)*",
        "`mode`\n: Which of two. *(`a` or `b`; default `a`)*",
    ]


def test_a_field_without_a_meaning_is_an_error() -> None:
    """A field without a description is an error."""
    with pytest.raises(LookupError, match=r"Untold\.name has no docstring"):
        list(described(Untold))


def test_a_page_that_asks_for_an_unknown_part_is_an_error() -> None:
    """An unknown part is an error, since the page would silently lack it."""
    with pytest.raises(KeyError, match="event-feelds"):
        filled("# Page\n\n<!-- generated: event-feelds -->\n")
