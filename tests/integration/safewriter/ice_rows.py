"""Rows of an Iceberg table, the statements that change them, and a concurrent writer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from tests.support.ice import Ice


class AbandonedError(Exception):
    """A script's own error in its block."""


MODES = ["copy-on-write", "merge-on-read"]
COLUMNS = "(id LONG, part STRING) USING iceberg PARTITIONED BY (bucket(2, part))"


def append(spark: SparkSession, table: str, begin: int, end: int) -> None:
    spark.range(begin, end, 1, 1).selectExpr("id", "'a' AS part").writeTo(table).append()


def ids(spark: SparkSession, table: str) -> list[int]:
    spark.catalog.refreshTable(table)  # another session may have written it, and Iceberg caches tables for 30 s
    return sorted(row.id for row in spark.table(table).collect())


MATCHED = " WHEN MATCHED THEN UPDATE SET id = t.id + 100 WHEN NOT MATCHED THEN INSERT (id, part) VALUES (s.id, 'b')"
STATEMENTS = {
    "append": ("INSERT INTO {table} VALUES (7, 'b')", [0, 1, 2, 3, 4, 7]),
    "overwrite": ("INSERT OVERWRITE {table} VALUES (7, 'b')", [7]),
    "update": ("UPDATE {table} SET id = id + 10 WHERE id > 2", [0, 1, 2, 13, 14]),
    "delete of rows": ("DELETE FROM {table} WHERE id = 3", [0, 1, 2, 4]),
    "delete of files": ("DELETE FROM {table} WHERE part = 'a'", []),
    "truncate": ("TRUNCATE TABLE {table}", []),
    "merge": (
        "MERGE INTO {table} t USING (SELECT explode(array(3L, 9L)) AS id) s ON t.id = s.id{matched}",
        [0, 1, 2, 4, 9, 103],
    ),
}


def foreign(spark: SparkSession, ice: Ice, begin: int, end: int) -> None:
    """Append as another writer: in another session, on another thread."""
    elsewhere(lambda: append(session_of(spark, ice), ice.name, begin, end))


def elsewhere(act: Callable[[], object]) -> None:
    """Do something on another thread, and wait for it."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(act).result()


def session_of(spark: SparkSession, ice: Ice) -> SparkSession:
    """Return another session with the catalog."""
    other = spark.newSession()
    for key, value in ice.catalog.settings().items():
        other.conf.set(key, value)
    return other
