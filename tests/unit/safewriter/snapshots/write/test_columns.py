"""A build of a snapshot refuses a column that is missing, or ambiguous under Spark's rule of case."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from safewriter.snapshots.errors import ConfigValidationError
from safewriter.snapshots.write.columns import check_column


def frame(*columns: str, case_sensitive: str = "false") -> Any:
    return SimpleNamespace(columns=list(columns), sparkSession=SimpleNamespace(conf={CASE: case_sensitive}))


CASE = "spark.sql.caseSensitive"


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        (("ID",), "no column 'id'"),
        (("id", "id"), "several columns 'id'"),
        (("v", "Id", "id"), "tell the columns Id, id"),
    ],
)
def test_a_column_that_is_not_one_is_refused_by_its_name(columns: tuple[str, ...], problem: str) -> None:
    """It is missing, or ambiguous for Spark."""
    with pytest.raises(ConfigValidationError, match=problem):
        check_column(frame(*columns), "id")


def test_columns_that_differ_by_case_are_two_where_spark_says_so() -> None:
    """Spark's setting decides; a single column does not need it."""
    check_column(frame("Id", "id", case_sensitive="true"), "id")
    check_column(frame("id", "v"), "id")
