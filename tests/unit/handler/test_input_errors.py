"""The handler's usage errors name the event's field in plain words, and show a bad value briefly and masked."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ConfigDict

from handler import input_errors
from handler.input_errors import InputError, described, validated


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    names: tuple[str, ...] = ()


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    inner: Inner


def test_the_path_is_written_as_in_the_event() -> None:
    """Fields have dots, list indices brackets, below the given prefix."""
    with pytest.raises(InputError) as caught:
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
    """None of the messages is pydantic's."""
    with pytest.raises(InputError) as caught:
        validated(Outer, data)
    assert str(caught.value) == text


def test_what_was_found_is_shown_short_and_masked() -> None:
    """A value of an event may be long, contain line ends or be a secret; the message stays one line without it."""
    assert described("a\nb") == "'a\\nb'"
    assert len(described("x" * 1000)) < 100
    assert "hunter22" not in described({"password": "hunter22"})


@pytest.mark.parametrize(
    "value",
    [
        "s3://" + "a:" * 2_500_000,
        {"entryPoint": "s3://scripts/" + "a" * 6_000_000},
        [["a:"] * 1000 for _ in range(1000)],
        {f"key{index}": "a:" for index in range(1_000_000)},
    ],
)
def test_of_much_that_was_found_only_the_beginning_is_read(value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Redaction takes seconds for the megabytes that an event may have."""
    lengths: list[int] = []

    def redact(text: str) -> str:
        lengths.append(len(text))
        return text

    monkeypatch.setattr(input_errors, "redact", redact)
    shown = described(value)
    assert max(lengths) <= 2048
    assert shown == f"{repr(value)[:80]}…"


@pytest.mark.parametrize("shown", range(20))
@pytest.mark.parametrize(
    ("before", "secret"),
    [
        ("", "ghp_" + "hunter22" * 4),
        ("https://me:", "hunter22" * 30 + "@h"),
        ("(db.password,", "hunter22" * 30 + ")"),
        ("<password>", "hunter22" * 30 + "</password>"),
        ("<password>", "hunter22" * 1000 + "</password>"),
        ("password: '", "hunter22 " * 1000),
    ],
)
def test_half_a_secret_is_not_shown(before: str, secret: str, shown: int) -> None:
    """A truncated secret may have lost its form; the text before it is short once it is masked."""
    filler = f"password='{'x' * (2048 - 20 - len(before) - shown)}' "
    assert "hunt" not in described([filler + before + secret])


def test_what_was_found_is_written_as_python_writes_it() -> None:
    """This covers nested and empty objects and lists."""
    value = {"a": [1, "b'", None, {}], "c": {"d": [], "e": True}}
    assert described(value) == repr(value)
    nested: list[object] = []
    for _ in range(3000):
        nested = [nested]
    assert described(nested) == "a list that is nested too deeply"


def test_a_name_from_outside_cannot_break_the_line() -> None:
    """Control characters and half surrogates are escaped, and an endless name is truncated."""
    error = InputError("a\nb\ud800", "p" * 5000)
    assert error.field == "a\\nb\\ud800"
    assert str(error).isprintable()
    assert len(str(error)) < 1100
