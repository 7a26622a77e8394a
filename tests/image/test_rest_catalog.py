"""An Iceberg REST catalog, which Iceberg's Java reaches through modules that no job on Delta needs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest

from scripts.emulator.rest_catalog import RestCatalog
from scripts.tables import iceberg as iceberg_table
from tests.support.lake import LAKE

if TYPE_CHECKING:
    from pathlib import Path

    from soal.testing.s3 import EmbeddedS3
    from tests.image.conftest import Cage

pytestmark = [pytest.mark.image, pytest.mark.slow]

TABLE: Final = "lake.db.t"
APPENDS: Final = f"""
    from pyspark.sql import SparkSession
    from safewriter import SafeWriter

    spark = SparkSession.builder.getOrCreate()
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
    spark.sql("CREATE TABLE IF NOT EXISTS {TABLE} (id BIGINT) USING iceberg")
    with SafeWriter(spark, "{TABLE}", format="iceberg") as sw:
        spark.range(3).writeTo(sw.table).append()
        sw.success()
    """


def test_a_guarded_append_through_a_rest_catalog_lands(cage: Cage, lake: EmbeddedS3, tmp_path: Path) -> None:
    """The image's trimmed Java has each module that the client of the catalog loads."""
    with RestCatalog(lake, tmp_path, f"s3a://{LAKE}/warehouse") as catalog:
        prefix = "spark.sql.catalog.lake"
        conf = {prefix: "org.apache.iceberg.spark.SparkCatalog", f"{prefix}.type": "rest", f"{prefix}.uri": catalog.uri}
        with cage.function({"SOAL_CONF": json.dumps(conf)}) as function:
            result = cage.run(function, APPENDS)
        assert result.state == "SUCCESS", result.log_tail
        assert [(write.status, write.rows) for write in result.writes] == [("committed", 3)]
        assert iceberg_table.view(lake.observer(), {"type": "rest", "uri": catalog.uri}, TABLE).rows == 3
