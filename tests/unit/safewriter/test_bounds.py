"""The bounds on others' JSON: memory is estimated before parsing, numbers have 64 bits, messages are shortened."""

from __future__ import annotations

import sys
import tracemalloc

import pytest

from safewriter.bounds import short, shortened, space_bytes, space_of, whole
from safewriter.parsing import parsed


@pytest.mark.parametrize(
    "each",
    [
        "{}",
        "[]",
        '{"a":1}',
        '{"a":{"b":[]}}',
        '"ab"',
        '"\U0001f600"',
        "1.5",
        "123456789012345678901234567890",
        "true",
        '{"%d":"%d"}',
        '"%040d"',
    ],
)
def test_values_take_no_more_memory_than_their_text_tells(each: str) -> None:
    """By this bound a settler refuses a text that would exhaust its memory, before it parses anything."""
    text = "[" + ",".join(each.replace("%d", str(n)).replace("%040d", f"{n:040}") for n in range(20_000)) + "]"
    for body in (text, text.encode()):
        tracemalloc.start()
        value = parsed(body)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(value) == 20_000
        # A body in bytes is decoded first, so that its text stands beside it.
        assert peak <= space_bytes(body) + len(text) * 4


@pytest.mark.parametrize("value", [2**63, -(2**63), 1.0, float("inf"), float("nan"), True, "1", None, []])
def test_a_number_is_whole_and_has_64_bits_or_is_none(value: object) -> None:
    """Delta writes nothing else as a long."""
    with pytest.raises(ValueError, match="whole number"):
        whole(value)
    assert whole(2**63 - 1) == 2**63 - 1


def test_a_message_has_its_beginning_and_its_last_words() -> None:
    """They say what, where, and what to do; a word is cut only before the ellipsis."""
    assert shortened("x" * 6000) == "x" * 6000
    long = shortened("where: " + "s" * 2_000_000 + " do this")
    assert long == "where: " + "s" * 3993 + "… (2,000,015 letters) do this"
    assert len(shortened("a word " * 1_000_000)) < 7000


def test_a_message_may_have_a_smaller_bound() -> None:
    """A column of a terminal is narrower than a log line."""
    assert shortened("x" * 300, 300) == "x" * 300
    assert shortened("x" * 301 + " do this", 300) == "x" * 200 + "… (309 letters) do this"


def test_a_value_of_others_is_shown_by_its_beginning() -> None:
    """Whatever it is."""
    assert short("a" * 10**6) == "'" + "a" * 199 + "…"
    assert short(["a"]) == "['a']"


def test_one_wide_letter_widens_a_text() -> None:
    """Python takes as many bytes for each character as for the widest."""
    assert (space_of("a" * 9), space_of("a" * 8 + "\U0001f600")) == (9, 36)
    wide = "a" * 999 + "\U0001f600"
    assert space_of(wide) <= sys.getsizeof(wide) <= space_of(wide) + 100
