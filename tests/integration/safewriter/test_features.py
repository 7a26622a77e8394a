"""Each table feature under which a commit is undone without Java: the rows that Spark and deltalake read afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from safewriter import SafeWriter
from safewriter.tables.delta.undo import UNDOABLE_FEATURES

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Row, SparkSession

    from tests.support.lake import Lake

pytestmark = pytest.mark.spark


def properties(*assignments: str) -> tuple[str, str]:
    return "", f"TBLPROPERTIES ({', '.join(assignments)})"


# A table with only old features has a version for them and no list; this one is always on the list.
LISTED: Final = "'delta.feature.domainMetadata' = 'supported'"
CREATED_WITH: Final[dict[str, tuple[str, str]]] = {
    "appendOnly": properties("'delta.feature.appendOnly' = 'supported'", LISTED),
    "changeDataFeed": properties("'delta.enableChangeDataFeed' = 'true'"),
    "checkConstraints": properties("'delta.constraints.positive' = 'id >= 0'", LISTED),
    "clustering": ("", "CLUSTER BY (id)"),
    "columnMapping": properties("'delta.columnMapping.mode' = 'name'"),
    "deletionVectors": properties("'delta.enableDeletionVectors' = 'true'"),
    "domainMetadata": properties("'delta.feature.domainMetadata' = 'supported'"),
    "generatedColumns": (", twice LONG GENERATED ALWAYS AS (id * 2)", ""),
    "identityColumns": (", number LONG GENERATED ALWAYS AS IDENTITY", ""),
    "inCommitTimestamp": properties("'delta.enableInCommitTimestamps' = 'true'"),
    "invariants": (", there LONG NOT NULL", properties(LISTED)[1]),
    "rowTracking": properties("'delta.enableRowTracking' = 'true'"),
    "timestampNtz": (", at TIMESTAMP_NTZ", ""),
    "v2Checkpoint": properties("'delta.checkpointPolicy' = 'v2'"),
    "vacuumProtocolCheck": properties("'delta.feature.vacuumProtocolCheck' = 'supported'"),
}
"""Additional columns, and the clauses after the columns."""
VALUES: Final = {"invariants": (", there", ", 1"), "timestampNtz": (", at", ", TIMESTAMP_NTZ '2026-11-21 00:00:00'")}
STATEMENTS: Final = (
    "INSERT INTO {table} (id, part{columns}) SELECT id + 100, id % 3{values} FROM range(9)",
    (
        "MERGE INTO {table} t USING (SELECT id * 2 AS id FROM range(20)) s ON t.id = s.id"
        " WHEN MATCHED AND t.id < 6 THEN DELETE WHEN MATCHED THEN UPDATE SET part = 9"
    ),
)
UNREAD: Final = frozenset({"vacuumProtocolCheck"})
"""Features with which deltalake cannot read a table."""


def test_every_feature_is_looked_at() -> None:
    """A new feature of the list must be added here."""
    assert set(CREATED_WITH) == UNDOABLE_FEATURES


@pytest.mark.matrix  # test_operations.py has six of them at once
@pytest.mark.parametrize("feature", sorted(CREATED_WITH))
def test_both_readers_find_the_rows_of_before(spark: SparkSession, lake: Lake, tmp_path: Path, feature: str) -> None:
    """After an undone append, and after the next commit."""
    table, (more, after) = f"delta.`{lake.table}`", CREATED_WITH[feature]
    columns, values = VALUES.get(feature, ("", ""))
    spark.sql(f"CREATE TABLE {table} (id LONG, part LONG{more}) USING delta {after}")
    spark.sql(f"INSERT INTO {table} (id, part{columns}) SELECT id, id % 3{values} FROM range(20)")
    by_spark, by_deltalake = rows(spark, lake), independent(lake, tmp_path / "before")
    assert (by_deltalake is None) == (feature in UNREAD)
    insert = STATEMENTS[0].format(table=table, columns=columns, values=values)
    with pytest.raises(ZeroDivisionError), SafeWriter(spark, lake.table, step="fails") as failed:
        spark.sql(insert)
        _ = 1 / 0
    assert failed.checkpoint is not None
    assert feature in failed.checkpoint.attempt.features
    if feature == "identityColumns":  # the column's mark is in the schema
        assert "schema" in str(failed.checkpoint.undo_refused)
        return
    assert (failed.checkpoint.status, failed.checkpoint.undo_refused) == ("rolled_back", None)
    assert lake.operations()[-1] == "SAFEWRITER REVERT"
    assert rows(spark, lake) == by_spark
    assert independent(lake, tmp_path / "after") == by_deltalake
    for number, statement in enumerate(STATEMENTS):
        with SafeWriter(spark, lake.table, step=f"lands {number}") as block:
            spark.sql(statement.format(table=table, columns=columns, values=values))
            block.success()
    landed = [(row.id, row.part) for row in rows(spark, lake)]
    assert len(landed) == 29 - 3
    if feature not in UNREAD:
        assert independent(lake, tmp_path / "landed") == sorted(landed)
    lake.check()


def rows(spark: SparkSession, lake: Lake) -> list[Row]:
    return sorted(spark.read.format("delta").load(lake.table).collect(), key=str)


def independent(lake: Lake, directory: Path) -> list[tuple[int, int]] | None:
    """Read a copy of the table with deltalake: ids and parts; None if it cannot read the table."""
    lake.download(directory)
    try:
        table = DeltaTable(str(directory))
        found = QueryBuilder().register("t", table).execute("SELECT id, part FROM t").read_all()
    except DeltaError as error:
        if "Unsupported table feature" not in str(error):
            raise
        return None
    return sorted(zip(found["id"].to_pylist(), found["part"].to_pylist(), strict=True))
