"""The statements that sample jobs make of their arguments."""

from __future__ import annotations

import runpy
import sys
from unittest.mock import MagicMock

import pytest

from scripts.local.sample import JOBS

HOSTILE = "lake.sales LOCATION 's3a://other/`'.t"


@pytest.mark.parametrize(
    ("job", "more"), [("accommodations_iceberg", ()), ("accommodations_parts", ("--format", "iceberg"))]
)
def test_a_table_s_name_stays_a_name(monkeypatch: pytest.MonkeyPatch, job: str, more: tuple[str, ...]) -> None:
    """A table name from an untrusted argument cannot add a clause to a statement."""
    session, builder = MagicMock(), MagicMock()
    builder.builder.appName.return_value.getOrCreate.return_value = session
    monkeypatch.setattr("pyspark.sql.SparkSession", builder)
    monkeypatch.setattr("pyspark.sql.functions.col", MagicMock())
    for name in ("SafeWriter", "parts"):
        monkeypatch.setattr(f"safewriter.{name}", MagicMock())
    monkeypatch.setattr(sys, "argv", [job, "--source", "s3a://lake/a.csv", "--table", HOSTILE, *more])

    runpy.run_path(str(JOBS / f"{job}.py"))

    expected = "CREATE NAMESPACE IF NOT EXISTS `lake`.`sales LOCATION 's3a://other/``'`"
    session.sql.assert_called_once_with(expected)
