"""SoAL's log store behaves like Delta's own: the same statements on two tables.

Delta uses the log store for far more than commits: it walks through folders of data, reads old versions, and writes
checkpoints, manifests and VACUUM's records.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest
from delta.tables import DeltaTable

from tests.support.lake import LAKE, Lake
from tests.support.log_stores import OURS, STOCK, log_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3

pytestmark = pytest.mark.spark

_DRAWN: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|deletion_vector_.*(?=\.bin)|(?<=TimeMs=)\d+"
)
_PARTITIONS: Final = "CASE id % 3 WHEN 0 THEN 'a b%20c/d' WHEN 1 THEN 'ä=1' END"


@dataclass
class Run:
    """One run of the statements, in a folder of its own, and their output without times and random names."""

    spark: SparkSession
    root: str
    shown: list[Any] = field(default_factory=list)

    def path(self, name: str, scheme: str = "s3a") -> str:
        return f"{scheme}://{LAKE}/{self.root}/{name}"

    def show(self, *found: object) -> None:
        self.shown.extend(_told(one, self.root) for one in found)

    def sql(self, statement: str) -> list[Any]:
        """Run a statement, and return its rows, or the class of its error."""
        try:
            rows = [tuple(row) for row in self.spark.sql(statement).collect()]
        except Exception as error:  # noqa: BLE001 - an error is an answer to compare, too
            self.show(error.getCondition() if hasattr(error, "getCondition") else type(error).__name__)
            return []
        self.show(sorted(map(str, rows)))
        return rows

    def rows(self, table: str, **options: str) -> None:
        frame = self.spark.read.format("delta").options(**options).load(table)
        self.show(sorted(map(str, frame.collect())))

    def append(self, table: str, begin: int, end: int) -> None:
        frame = self.spark.range(begin, end, 1, 1).selectExpr("id", f"{_PARTITIONS} AS p")
        frame.write.format("delta").mode("append").partitionBy("p").save(table)

    def keys(self, s3: EmbeddedS3) -> None:
        self.show(sorted(_told(key, self.root) for key in s3.keys(LAKE, self.root)))


def _told(found: object, root: str) -> str:
    text = str(found).replace(root, "ROOT")
    return re.sub(r"-c000|part-\d{5}", "part", _DRAWN.sub("DRAWN", text))


def vacuum(run: Run) -> None:
    """Partitioned, with escaped names and a partition without a value."""
    table = run.path("vacuum")
    run.append(table, 0, 6)
    run.sql(f"DELETE FROM delta.`{table}` WHERE id < 3")
    run.sql(f"VACUUM delta.`{table}` RETAIN 0 HOURS")
    run.rows(table)


def vacuums(run: Run) -> None:
    """By the log alone, as a dry run, and of a missing table."""
    table = run.path("vacuums")
    run.append(table, 0, 6)
    run.sql(f"UPDATE delta.`{table}` SET id = id + 100")
    run.sql(f"VACUUM delta.`{table}` RETAIN 0 HOURS DRY RUN")
    run.sql(f"VACUUM delta.`{table}` LITE RETAIN 0 HOURS")
    run.rows(table)
    run.sql(f"VACUUM delta.`{run.path('none')}` RETAIN 0 HOURS")


def convert(run: Run) -> None:
    """Parquet, partitioned or not, with unrelated subfolders; a folder without any."""
    for name, parts in (("flat", ()), ("parts", ("p", "q"))):
        frame = run.spark.range(0, 6, 1, 1).selectExpr("id", f"coalesce({_PARTITIONS}, 'x') AS p", "id % 2 AS q")
        frame.write.partitionBy(*parts).parquet(run.path(name))
        columns = f"PARTITIONED BY ({', '.join(f'{part} STRING' if part == 'p' else f'{part} INT' for part in parts)})"
        run.sql(f"CONVERT TO DELTA parquet.`{run.path(name)}` {columns if parts else ''}")
        run.rows(run.path(name))
    run.sql(f"CONVERT TO DELTA parquet.`{run.path('nothing')}`")


def manifests(run: Run) -> None:
    """Made twice, so that one replaces another."""
    table = run.path("manifests")
    for begin in (0, 3):
        run.append(table, begin, begin + 3)
        run.sql(f"GENERATE symlink_format_manifest FOR TABLE delta.`{table}`")
    run.sql(
        f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.compatibility.symlinkFormatManifest.enabled' = 'true')"
    )
    run.append(table, 6, 9)


def clones(run: Run) -> None:
    """Shallow, of the present and of an earlier version, then changed and vacuumed."""
    table, clone = run.path("cloned"), run.path("clone")
    for begin in (0, 3):
        run.append(table, begin, begin + 3)
    run.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{table}` VERSION AS OF 0")
    run.sql(f"CREATE OR REPLACE TABLE delta.`{clone}` SHALLOW CLONE delta.`{table}`")
    run.sql(f"DELETE FROM delta.`{clone}` WHERE id = 1")
    run.sql(f"VACUUM delta.`{clone}` RETAIN 0 HOURS")
    run.rows(clone)
    run.rows(table)


def logs(run: Run) -> None:
    """Checkpoints of both kinds with sidecars, deletion vectors, a change feed, and the log's clean-up."""
    table = run.path("logs")
    run.append(table, 0, 3)
    for policy in ("v2", "classic"):
        run.sql(
            f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.checkpointPolicy' = '{policy}',"
            " 'delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true',"
            " 'delta.checkpointInterval' = '2')"
        )
        for begin in (10, 20, 30):
            run.append(table, begin, begin + 4)
        run.sql(f"DELETE FROM delta.`{table}` WHERE id % 10 = 1")
    run.sql(f"REORG TABLE delta.`{table}` APPLY (PURGE)")
    run.sql(f"OPTIMIZE delta.`{table}`")
    run.sql(f"RESTORE delta.`{table}` TO VERSION AS OF 5")
    run.sql(f"SELECT version, operation FROM (DESCRIBE HISTORY delta.`{table}`)")
    run.rows(table)
    run.rows(table, versionAsOf="3")
    feed = run.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 2).load(table)
    run.show(sorted(str(tuple(row)[:4]) for row in feed.collect()))
    stream = run.spark.readStream.format("delta").option("startingVersion", 6).option("ignoreDeletes", "true")
    query = (
        stream.option("skipChangeCommits", "true").load(table).writeStream.format("delta").trigger(availableNow=True)
    ).option("checkpointLocation", run.path("stream"))
    query.start(run.path("sink")).awaitTermination()
    run.rows(run.path("sink"))


def names(run: Run) -> None:
    """Tables with escaped names, by either scheme; a folder without a table, and an empty one."""
    for name in ("a b", "p%20q", "ü"):
        table = run.path(name, "s3")
        run.append(table, 0, 3)
        DeltaTable.forPath(run.spark, run.path(name)).delete("id = 0")
        run.sql(f"VACUUM delta.`{table}` RETAIN 0 HOURS")
        run.rows(table)
    for name in ("none", "names"):
        run.show(DeltaTable.isDeltaTable(run.spark, run.path(name)))
        run.sql(f"SELECT * FROM delta.`{run.path(name)}`")


@pytest.mark.parametrize(
    "statements",
    [
        vacuum,
        convert,
        *(pytest.param(one, marks=pytest.mark.matrix) for one in (vacuums, manifests, clones, logs, names)),
    ],
)
def test_delta_does_the_same_with_either_store(
    spark: SparkSession, s3: EmbeddedS3, lake: Lake, statements: Callable[[Run], None]
) -> None:
    """Rows, answers, errors, and the names of all objects."""
    session = spark.newSession()
    session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    session.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")  # VACUUM's listing: 10,000 tasks
    session.conf.set("spark.databricks.delta.snapshotPartitions", "1")
    runs = []
    for store in (STOCK, OURS):
        run = Run(session, f"{lake.name}-{uuid.uuid4().hex[:8]}")
        with log_store(spark, store):
            statements(run)
        run.keys(s3)
        runs.append(run.shown)
    assert runs[1] == runs[0]
