"""`soal orphans` on an Iceberg table: files of a failed block, and the printed statements, run on Spark."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from safewriter import SafeWriter
from safewriter.objects.s3 import table_store
from safewriter.tables.iceberg.catalogs import open_pointer
from safewriter.tables.iceberg.metadata import FenceTag
from safewriter.tables.iceberg.name import TableName
from soal.orphans.iceberg import IcebergReport, look
from tests.support.hygiene import wait_for_hygiene
from tests.support.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.support.ice import Catalog
    from tests.support.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.matrix]


class AbandonedError(Exception):
    """A script's own error in its block."""


def test_the_statements_that_are_shown_are_spark_s(
    spark: SparkSession, s3: EmbeddedS3, lite: Catalog, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed block has left a file in a table that distributes its files by a hash, and the report names it; one
    statement deletes such files, the other an old fence.
    """
    for key, value in lite.pyiceberg.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LITE__{key.upper()}", value)
    table = lite.table(s3.observer())
    spark.sql(
        f"CREATE TABLE {table.name} (id LONG) USING iceberg TBLPROPERTIES ('write.object-storage.enabled' = 'true')"
    )
    spark.range(3).writeTo(table.name).append()
    with pytest.raises(AbandonedError), SafeWriter(spark, table.name, format="iceberg") as block:
        spark.range(3, 6, 1, 1).writeTo(block.table).append()
        raise AbandonedError
    wait_for_hygiene()
    name = TableName.parse(table.name)
    pointer = open_pointer(name, lite.spark, table_store)
    held = pointer.read()
    assert held is not None
    fence = f"sw-{'0' * 32}-1-{'0' * 16}"
    assert pointer.commit(held, FenceTag(fence, held.metadata["current-snapshot-id"], 1))

    def looked() -> IcebergReport:
        return look(lake.client, name, timedelta(minutes=-1), lambda _: None)  # also files of this very second

    assert until(lambda: len(looked().statements) == 2)  # S3 dates in whole seconds, and the fence must have expired
    found = looked()

    assert {one.path for one in found.orphans} == table.orphans()
    assert sum(one.path.endswith(".parquet") for one in found.orphans) == 1
    assert [one.name for one in found.fences] == [fence]
    assert len(found.statements) == 2
    for statement in found.statements:
        spark.sql(statement)
    assert table.refs() == {"main"}
    assert table.rows() == 3
