"""The stable text of a value is the same in every process and differs between values; opaque objects are refused."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, StrEnum
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import pytest

from safewriter.stable_text import stable_text


class Colour(Enum):
    RED = 1


class Word(StrEnum):
    RED = "red"


@dataclass
class Piece:
    ids: list[int]
    day: date


class Opaque:
    """An object whose `repr` shows its memory address."""


class Frame:
    """Like Spark's: its text has the columns, but not the rows."""

    def __repr__(self) -> str:
        return "DataFrame[id: bigint]"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (True, "True"),
        (7, "7"),
        ("7", "'7'"),
        (b"7", "b'7'"),
        (1.5, "1.5"),
        (range(3, 9), "range(3, 9)"),
        (date(2025, 1, 2), "date('2025-01-02')"),
        (datetime(2025, 1, 2, tzinfo=UTC), "datetime('2025-01-02 00:00:00+00:00')"),
        (Decimal("1.50"), "Decimal('1.50')"),
        (UUID(int=1), "UUID('00000000-0000-0000-0000-000000000001')"),
        (PurePosixPath("a/b"), "PurePosixPath('a/b')"),
        (Colour.RED, "Colour.RED"),
        (Word.RED, "'red'"),
        ([1, "a", (2,)], "[1, 'a', [2]]"),
        ({"b": 1, "a": [2]}, "{'a': [2], 'b': 1}"),
        ({3, 1, 2}, "{1, 2, 3}"),
        (Piece([1], date(2025, 1, 2)), "Piece(ids=[1], day=date('2025-01-02'))"),
    ],
    ids=str,
)
def test_the_text_is_the_whole_value(value: Any, text: str) -> None:
    """And nothing but the value: the text does not depend on an order that Python does not promise."""
    assert stable_text(value) == text


@pytest.mark.parametrize(
    "value",
    [Opaque(), Frame(), [1, Opaque()], {"a": Frame()}, iter([1]), Piece, lambda: 1],
    ids=lambda one: str(type(one)),
)
def test_a_value_without_a_text_of_its_own_is_refused(value: Any) -> None:
    """Two of them could have one text, or one could have two."""
    with pytest.raises(ValueError, match="has no text that is the same on each attempt"):
        stable_text(value)


def test_two_values_have_two_texts() -> None:
    """The number and its digits, a list and its element, a longer list."""
    values: list[Any] = [1, "1", [1], [[1]], [1, 1], ["1, 1"], ["1", "1"], {1: 1}, {1}, b"1", None, "None", Decimal(1)]
    assert len({stable_text(value) for value in values}) == len(values)


def test_another_process_finds_the_same_text() -> None:
    """There hashes of texts differ."""
    program = "from safewriter.stable_text import stable_text; print(stable_text({'a', 'b', 'c', 'd', 'e'}))"
    texts = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in "1234"
    }
    assert texts == {"{'a', 'b', 'c', 'd', 'e'}\n"}
