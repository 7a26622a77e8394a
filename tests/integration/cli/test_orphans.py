"""`soal orphans` on a table written by Spark, with every way in which a log can reference a file."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from tests.support.command_line import app
from tests.support.lake import Lake

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3

pytestmark = pytest.mark.spark

BUCKET = "soal-orphans"
DAYS_8_S = 8 * 86_400
MARK = "sw-0123456789abcdef0123456789abcdef-1-0123456789abcdef-"
PARTITIONS = "CASE id % 3 WHEN 0 THEN 'a b/c%d=e' WHEN 1 THEN 'ü+&:?' END"
CREATED_WITH = {
    "delta.enableDeletionVectors": "true",
    "delta.checkpointInterval": "5",
    "delta.checkpointPolicy": "v2",
    "delta.columnMapping.mode": "name",
}
CHANGED_TO = "'delta.randomizeFilePrefixes' = 'true', 'delta.enableChangeDataFeed' = 'true'"
CHECKPOINT = 5


class Bench:
    """A table of Spark's with a history, and `soal orphans` on it."""

    def __init__(self, s3: EmbeddedS3, spark: SparkSession) -> None:
        self.s3, self.spark = s3, spark
        self.lake = Lake(s3.observer(), s3.endpoint, f"tables/{uuid.uuid4().hex}")
        self.lake.client.create_bucket(Bucket=BUCKET)

    def write(self) -> None:
        """Write seven versions: folders of partitions, random prefixes, removed files, vectors, a removed vector."""
        table = f"delta.`{self.lake.table}`"
        self.append(0, **CREATED_WITH)
        self.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({CHANGED_TO})")
        self.append(100)
        self.spark.sql(f"UPDATE {table} SET id = id + 1000 WHERE id % 10 = 3")
        self.spark.sql(f"DELETE FROM {table} WHERE day IS NULL")
        self.spark.sql(f"DELETE FROM {table} WHERE id % 10 = 7")
        self.spark.sql(f"DELETE FROM {table} WHERE id % 10 = 9")

    def append(self, start: int, **properties: str) -> None:
        frame = self.spark.range(start, start + 30, 1, 1).selectExpr("id", f"{PARTITIONS} AS day")
        frame.write.format("delta").partitionBy("day").options(**properties).mode("append").save(self.lake.table)

    def lose_log(self) -> set[str]:
        """Delete the log before its checkpoint; return the change data that it referenced."""
        lost = {
            action["cdc"]["path"] for commit in self.lake.commits()[:CHECKPOINT] for action in commit if "cdc" in action
        }
        for key in sorted(self.lake.keys()):
            if key.startswith("_delta_log/0") and int(key[11:31]) < CHECKPOINT:
                self.lake.store.delete(key)
        return lost

    def files(self) -> set[str]:
        return {key for key in sorted(self.lake.keys()) if not key.startswith("_delta_log/") and not key.endswith("/")}

    def ids(self, **options: str) -> list[int]:
        return sorted(
            row.id for row in self.spark.read.format("delta").options(**options).load(self.lake.table).collect()
        )

    def soal(self, *arguments: str) -> Any:
        options = ("--endpoint-url", self.s3.endpoint, "--bucket", BUCKET, "--json")
        done = CliRunner().invoke(app, ["orphans", self.lake.table, *options, *arguments], catch_exceptions=False)
        assert done.exit_code == 0
        return json.loads(done.stdout)


@pytest.fixture
def bench(s3: EmbeddedS3, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    for variable, value in s3.environment().items():
        monkeypatch.setenv(variable, value)
    s3.wire.clock_ahead_s = DAYS_8_S
    yield Bench(s3, spark)
    s3.wire.clock_ahead_s = 0


def after(version: int) -> list[int]:
    """The ids of the table's last two versions."""
    ids = [id_ + 1000 * (id_ % 10 == 3) for id_ in (*range(30), *range(100, 130)) if id_ % 3 != 2]
    return sorted(id_ for id_ in ids if id_ % 10 != 7 and (version == CHECKPOINT or id_ % 10 != 9))


@pytest.mark.matrix
def test_what_no_version_needs_is_found_and_deleted_and_nothing_else(bench: Bench) -> None:
    """Every file of a real table is known, by its commits or by its checkpoint; files put beside them are deleted."""
    bench.write()
    needed = bench.files()
    report = bench.soal()
    assert (report["orphans"], report["retained"]["files"], report["version"]) == ([], len(needed), CHECKPOINT + 1)

    lost = bench.lose_log()
    vector = next(key for key in needed if key.rsplit("/", 1)[-1].startswith("deletion_vector_"))
    strange = {
        f"day=a b%2Fc%25d%3De/part-00000-{uuid.uuid4()}-c000.snappy.parquet": "data",
        f"xY/{MARK}part-00000-{uuid.uuid4()}-c000.snappy.parquet": "marked",
        vector.replace(vector[-40:-4], str(uuid.uuid4())): "deletion_vector",
        **{key: "change_data" for key in needed if key in lost},
    }
    for key in (*(strange.keys() - needed), "_SUCCESS", "readme.txt"):
        bench.lake.store.put(key, b"left behind")
    everything = bench.files()
    report = bench.soal()
    assert {one["key"]: one["kind"] for one in report["orphans"]} == strange
    assert (report["dryRun"], bench.files()) == (True, everything)

    report = bench.soal("--delete")
    held = {one["key"] for one in report["orphans"] if one["held"]}
    assert held == {key for key, kind in strange.items() if kind == "marked"}
    assert bench.files() == everything - (strange.keys() - held)
    assert (bench.ids(), bench.ids(versionAsOf=str(CHECKPOINT))) == (after(CHECKPOINT + 1), after(CHECKPOINT))
