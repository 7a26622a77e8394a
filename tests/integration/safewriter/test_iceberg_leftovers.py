"""The data files of a failed block on an Iceberg table, at any location of the table's files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter import SafeWriter
from tests.integration.safewriter.ice_rows import AbandonedError, ids
from tests.support.hygiene import wait_for_hygiene
from tests.support.lake import LAKE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.ice import Ice

pytestmark = [pytest.mark.spark]


def data_files(table: Ice) -> set[str]:
    return {one for one in table.orphans() if one.endswith((".parquet", ".puffin"))}


@pytest.mark.parametrize(
    "layout",
    [
        pytest.param("", id="its own folder"),
        pytest.param(
            f"'write.data.path' = 's3a://{LAKE}/elsewhere/rows/'", id="another folder", marks=pytest.mark.matrix
        ),
    ],
)
def test_a_failed_block_leaves_no_data_file_and_the_next_one_publishes_its_own(
    spark: SparkSession, ice: Ice, layout: str
) -> None:
    """In a partitioned table, after an append and a MERGE that writes deletes."""
    spark.sql(f"DROP TABLE {ice.name}")
    properties = ", ".join(("'format-version' = '2', 'write.merge.mode' = 'merge-on-read'", *([layout] * bool(layout))))
    spark.sql(
        f"CREATE TABLE {ice.name} (id LONG, city STRING) USING iceberg PARTITIONED BY (city)"
        f" TBLPROPERTIES ({properties})"
    )
    spark.sql(f"INSERT INTO {ice.name} SELECT id, 'Köln / =' FROM range(3)")
    before = data_files(ice)  # of the dropped table

    def write(block: SafeWriter) -> None:
        spark.sql(f"INSERT INTO {block.table} SELECT id, 'Roma' FROM range(3, 6)")
        spark.sql(
            f"MERGE INTO {block.table} t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 9"
        )

    with pytest.raises(AbandonedError), SafeWriter(spark, ice.name, format="iceberg") as block:
        write(block)
        raise AbandonedError
    wait_for_hygiene()
    assert data_files(ice) == before
    assert ids(spark, ice.name) == [0, 1, 2]

    with SafeWriter(spark, ice.name, format="iceberg", step="next") as block:
        write(block)
        block.success()
    wait_for_hygiene()
    assert data_files(ice) == before
    assert ids(spark, ice.name) == [0, 2, 3, 4, 5, 9]
    (attempt,) = {one.attempt.prefix.rstrip("-") for one in ice.documents() if one.status == "committed"}
    own = [one for one in ice.referred() if f"/{attempt}/" in one]
    assert {one.rpartition("/")[2].rpartition(".")[2] for one in own} == {"parquet"}
    assert len(own) >= 3, "the rows of both statements, and what the second deletes"
