"""The experiment makes its files with the paper's columns, or takes a given CSV file if its lines are whole."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import pytest

from scripts.accommodations import Accommodation
from tests.lab.experiment.data import BASE_ROWS, generated, given

if TYPE_CHECKING:
    from pathlib import Path


def test_the_made_up_file_has_the_paper_s_columns() -> None:
    """In its order, with as many rows as asked for; the table has others before."""
    dataset = generated(50)
    header, *rows = csv.reader(io.StringIO(dataset.body.decode(), newline=""), delimiter=";")
    assert header == dataset.base.column_names
    assert header == list(Accommodation.__slots__)
    assert len(header) == 14
    assert len(rows) == dataset.rows == 50
    assert dataset.base.num_rows == BASE_ROWS
    assert dataset.ddl.startswith("`id` INT, `name` STRING, `price` INT")


def test_a_given_file_is_text_in_its_own_columns(tmp_path: Path) -> None:
    """Whatever is in it, as far as its lines are whole."""
    path = tmp_path / "some.csv"
    path.write_text('a;b c\n1;"x\ny"\n2;z\n', encoding="utf-8")
    dataset = given(path)
    assert (dataset.rows, dataset.ddl) == (2, "`a` STRING, `b c` STRING")
    assert dataset.body == path.read_bytes()


@pytest.mark.parametrize("text", ["", "a;b\n", "a;b\n1\n", "a;a\n1;2\n"])
def test_what_is_no_such_file_is_refused(tmp_path: Path, text: str) -> None:
    """Empty, without rows, with a short line, with a column twice."""
    path = tmp_path / "some.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"some\.csv is no CSV file"):
        given(path)
