"""A guarded Iceberg job as a function: the handler in the emulator, a REST catalog, the sample job."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from scripts.accommodations import csv_bytes
from scripts.emulator.rest_catalog import RestCatalog
from scripts.local.function import Function
from scripts.local.sample import put_sample
from scripts.tables import iceberg as iceberg_table
from soal.home import Home
from soal.local.names import BUCKETS, CHECKPOINTS, DATA, LAKE, SCRIPTS, SOURCE_KEY
from soal.testing.s3.embedded import EmbeddedS3

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.emulator, pytest.mark.spark, pytest.mark.slow, pytest.mark.matrix, pytest.mark.timeout(600)]

ROWS = 500_000
TABLE = "lake.db.accommodations"


def test_half_a_million_rows_land_guarded_in_two_gigabytes(tmp_path: Path) -> None:
    """The paper's baseline failed with errors there (its Table VIII); the heap is the rest of 2,048 MB."""
    with (
        EmbeddedS3(buckets=BUCKETS, unlistable=(CHECKPOINTS,)) as s3,
        RestCatalog(s3, tmp_path, f"s3a://{LAKE}/warehouse") as catalog,
    ):
        put_sample(s3.observer())
        s3.observer().put_object(Bucket=DATA, Key=SOURCE_KEY, Body=csv_bytes(ROWS))
        prefix = "spark.sql.catalog.lake"
        conf = {prefix: "org.apache.iceberg.spark.SparkCatalog", f"{prefix}.type": "rest", f"{prefix}.uri": catalog.uri}
        event = {
            "entryPoint": f"s3://{SCRIPTS}/jobs/accommodations_iceberg.py",
            "entryPointArguments": ["--source", f"s3a://{DATA}/{SOURCE_KEY}", "--table", TABLE],
        }
        variables = {**s3.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS, "SOAL_CONF": json.dumps(conf)}
        report = Function(variables, 300, 2048, Home.of(), lambda _: None).invoke(event)
        assert report.result is not None, report.problem
        assert report.result.state == "SUCCESS", report.result.state_details
        (write,) = report.result.writes
        assert (write.status, write.rows) == ("committed", ROWS)
        seen = iceberg_table.view(s3.observer(), {"type": "rest", "uri": catalog.uri}, TABLE)
        assert (seen.version, seen.rows, seen.orphans) == (2, ROWS, ())
