"""Incremental builds on a real Spark: shards with the same rows are taken over, and all others written."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions

from safewriter.snapshots import SnapshotReader, WriteConfig, cel_sharding_by_columns, json_cols, write_sharded
from safewriter.snapshots.config import Duplicates
from safewriter.snapshots.errors import ShardCoverageError
from safewriter.snapshots.format.encoding import KeyEncoding

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from safewriter.snapshots import BuildResult
    from tests.integration.safewriter.snapshots.conftest import Build
    from tests.support.snapshot_prefix import SnapshotPrefix

pytestmark = pytest.mark.spark

ROWS = 200


def rows(spark: SparkSession, value: str = "concat('value ', id)", key: str = "id") -> DataFrame:
    return spark.range(ROWS).selectExpr(f"{key} AS id", f"{value} AS v", "id AS at")


def urls(result: BuildResult) -> dict[int, str]:
    return {shard.db_id: shard.db_url for shard in result.shards}


def test_only_shards_whose_rows_have_changed_are_written(
    spark: SparkSession, prefix: SnapshotPrefix, build: Build
) -> None:
    """In any order of the rows. A row that is new, gone or changed changes its shard; a build that finds none is
    published, too, and leaves the earlier shards where they are.
    """
    first = build(rows(spark), num_dbs=8, incremental=True)
    again = build(rows(spark).repartition(3), num_dbs=8, incremental=True)
    assert (first.taken_over, again.taken_over, urls(again)) == (0, 8, urls(first))
    assert again.stats.rows_written == again.stats.rows_read == ROWS
    with SnapshotReader(prefix.uri) as reader:
        other = (
            rows(spark, "if(id = 7, 'new', concat('value ', id))")
            .where("id <> 9")
            .union(spark.sql("SELECT 1000L AS id, 'one more' AS v, 0L AS at"))
        )
        changed = build(other, num_dbs=8, incremental=True)
        homes = {reader.route(key) for key in (7, 9, 1000)}
        assert {db_id for db_id, url in urls(changed).items() if url != urls(first)[db_id]} == homes
        assert reader.refresh()
        assert reader.multi_get([7, 9, 1000, 8]) == {7: b"new", 9: None, 1000: b"one more", 8: b"value 8"}
        assert reader.verify().is_sound
    assert changed.taken_over == 8 - len(homes)
    assert urls(build(rows(spark).where("id < 0"), num_dbs=8, incremental=True)) == {}


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({"num_dbs": 4}, id="other shards"),
        pytest.param({"duplicates": Duplicates.ANY}, id="another choice of rows"),
        pytest.param({"key_encoding": KeyEncoding.U32BE}, id="other keys"),
    ],
)
def test_another_rule_writes_all_shards(spark: SparkSession, build: Build, config: dict[str, Any]) -> None:
    """The rows are the same, and their files are not."""
    build(rows(spark), num_dbs=8, incremental=True)
    assert build(rows(spark), **{"num_dbs": 8, **config}, incremental=True).taken_over == 0


def test_rows_of_one_key_are_compared_with_their_ranks(
    spark: SparkSession, prefix: SnapshotPrefix, build: Build
) -> None:
    """Another one of them stays, though each key and each value is there as before."""
    last: dict[str, Any] = {"duplicates": Duplicates.LAST, "last_by": "at", "num_dbs": 2, "incremental": True}
    first = spark.sql("SELECT * FROM VALUES (1L, 'a', 1L), (1L, 'b', 2L), (2L, 'c', 1L) AS t(id, v, at)")
    other = spark.sql("SELECT * FROM VALUES (1L, 'a', 2L), (1L, 'b', 1L), (2L, 'c', 1L) AS t(id, v, at)")
    build(first, **last)
    build(other, **last)
    with SnapshotReader(prefix.uri) as reader:
        assert reader.multi_get([1, 2]) == {1: b"a", 2: b"c"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("('a', 'bc')", "('ab', 'c')", id="a letter goes from the key to the value"),
        pytest.param("('a', cast(null AS string))", "('a', '\\\\x00')", id="nothing and a nul"),
    ],
)
def test_texts_are_compared_with_their_bounds(spark: SparkSession, build: Build, before: str, after: str) -> None:
    """Otherwise a shard would keep another row."""
    how: dict[str, Any] = {"num_dbs": 1, "key_encoding": KeyEncoding.UTF8, "incremental": True}
    build(spark.sql(f"SELECT * FROM VALUES {before} AS t(id, v)"), **how)
    assert build(spark.sql(f"SELECT * FROM VALUES {after} AS t(id, v)"), **how).taken_over == 0
    assert build(spark.sql(f"SELECT * FROM VALUES {after} AS t(id, v)"), **how).taken_over == 1


def test_values_of_json_and_an_expression_are_compared(spark: SparkSession, prefix: SnapshotPrefix) -> None:
    """A null is not an absent list; the shard of each region is compared by itself."""
    config = WriteConfig(s3_prefix=prefix.uri, sharding=cel_sharding_by_columns("region"), incremental=True)

    def built(change: str) -> BuildResult:
        frame = spark.range(30).selectExpr(
            "id", "concat('r', id % 3) AS region", f"if(id = 4, {change}, array(id, null)) AS list", "map('k', id) AS m"
        )
        return write_sharded(frame, config, key_col="id", value_spec=json_cols(), step=change)

    assert [built(change).taken_over for change in ("null", "null ", "array()", "array(null)")] == [0, 3, 2, 2]
    with SnapshotReader(prefix.uri) as reader:
        value = reader.get(4, routing_context={"region": "r1"})
    assert value == b'{"list":[null],"m":{"k":4},"region":"r1"}'


def test_a_source_that_differs_from_one_reading_to_the_next_is_refused(
    spark: SparkSession, prefix: SnapshotPrefix, build: Build
) -> None:
    """The snapshot would have rows of both; with a cache it has those of one."""
    build(rows(spark), num_dbs=4, incremental=True)
    before = prefix.data()
    anything = functions.udf(lambda _: uuid.uuid4().hex).asNondeterministic()
    with pytest.raises(ShardCoverageError, match="cache_input=True"):
        build(rows(spark).withColumn("v", anything("id")), num_dbs=4, incremental=True)
    assert prefix.data() == before
