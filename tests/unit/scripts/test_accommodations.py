"""The generator of made-up accommodations gives a seed's rows in the paper's columns, with awkward texts."""

from __future__ import annotations

import csv
import io
from dataclasses import fields
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from scripts.accommodations import ROWS, Accommodation, csv_bytes, generate, write_csv

COLUMNS = [
    "id",
    "name",
    "price",
    "city",
    "country",
    "geonames_id",
    "timezone",
    "reviews",
    "rating",
    "satisfaction",
    "beds",
    "checkin",
    "city_id",
    "accommodation_type",
]


def test_the_columns_are_those_of_the_paper() -> None:
    """Fourteen columns, in the paper's order."""
    assert [field.name for field in fields(Accommodation)] == COLUMNS


@given(rows=st.integers(0, 60), seed=st.integers(0, 2**32))
def test_a_csv_reader_gets_back_every_row(rows: int, seed: int) -> None:
    """Whatever the names contain, the file has the requested number of records, each with fourteen fields."""
    target = io.StringIO(newline="")
    write_csv(target, rows, seed=seed)
    header, *records = csv.reader(io.StringIO(target.getvalue(), newline=""), delimiter=";")
    assert header == COLUMNS
    assert [record[1] for record in records] == [one.name for one in generate(rows, seed=seed)]
    assert all(len(record) == 14 for record in records)


def test_the_same_seed_gives_the_same_rows_and_another_seed_others() -> None:
    """The rows depend only on the seed, and fewer rows are a prefix of more."""
    assert csv_bytes(50) == csv_bytes(50)
    assert list(generate(10)) == list(islice(generate(50), 10))
    assert csv_bytes(50) != csv_bytes(50, seed=1)


def test_the_default_file_holds_what_breaks_careless_readers() -> None:
    """It has 22,248 unique ids, and names with quotes, separators, backslashes, line breaks, non-ASCII letters."""
    rows = list(generate())
    assert len(rows) == ROWS == 22_248
    assert len({row.id for row in rows}) == ROWS
    names = "\0".join(row.name for row in rows)
    assert all(mark in names for mark in ('"', ";", "\\", "\n", "ü"))


def test_values_are_plausible() -> None:
    """Ratings exist exactly where there are reviews and stay in their range; prices and beds are positive."""
    for row in generate(2_000):
        assert (row.rating is None) == (row.satisfaction is None) == (row.reviews == 0)
        assert row.rating is None or 1 <= row.rating <= 5
        assert row.price > 0
        assert row.beds > 0
