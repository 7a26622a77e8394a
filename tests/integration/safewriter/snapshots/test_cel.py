"""Snapshots that a real Spark shards by an expression, and checked with the CEL library."""

from __future__ import annotations

import json
import sqlite3
import uuid
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
import xxhash
from cel_expr_python import cel

from safewriter.objects.location import Location
from safewriter.objects.s3 import open_store
from safewriter.snapshots.config import WriteConfig
from safewriter.snapshots.errors import ConfigValidationError, KeyRangeError, RoutingContextError, ShardAssignmentError
from safewriter.snapshots.read.reader import SnapshotReader
from safewriter.snapshots.sharding import (
    CelColumn,
    CelType,
    ShardingSpec,
    ShardingStrategy,
    cel_sharding,
    cel_sharding_by_columns,
)
from safewriter.snapshots.write.build import write_sharded
from safewriter.snapshots.write.values import binary_col
from tests.support.lake import LAKE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from soal.testing.s3.embedded import EmbeddedS3

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("lake")]

ROWS = 2000
TIER = CelColumn("tier", CelType.INT)
EACH = ShardingSpec(
    strategy=ShardingStrategy.CEL,
    cel_expr="string(key)",
    cel_columns={"key": "int"},
    infer_routing_values_from_data=True,
)


def prefix_of(name: str) -> str:
    return f"s3://{LAKE}/snapshots/cel-{name}"


def users(spark: SparkSession) -> DataFrame:
    return spark.range(ROWS).selectExpr(
        "id * 7919 AS id", "concat('r', id % 7) AS region", "cast(id % 3 AS int) AS tier", "concat('value ', id) AS v"
    )


def build(df: DataFrame, name: str, sharding: ShardingSpec) -> None:
    config = WriteConfig(s3_prefix=prefix_of(name), sharding=sharding)
    write_sharded(df, config, key_col="id", value_spec=binary_col("v"))


def manifest_of(s3: EmbeddedS3, prefix: str) -> tuple[dict[str, Any], int, dict[int, set[int]]]:
    """Return the rule, the number of shards, and the keys of each, by SQLite alone."""
    observer = s3.observer()

    def body(uri: str) -> bytes:
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        return observer.get_object(Bucket=bucket, Key=key)["Body"].read()

    keys: dict[int, set[int]] = {}
    with closing(sqlite3.connect(":memory:")) as manifest:
        manifest.deserialize(body(json.loads(body(f"{prefix}/_CURRENT"))["manifest_ref"]))
        ((sharding, num_dbs),) = manifest.execute("SELECT sharding, num_dbs FROM build_meta").fetchall()
        for db_id, url in manifest.execute("SELECT db_id, db_url FROM shards"):
            with closing(sqlite3.connect(":memory:")) as shard:
                shard.deserialize(body(f"{url}/shard.db"))
                keys[db_id] = {int.from_bytes(key, "big") for (key,) in shard.execute("SELECT k FROM kv")}
    return json.loads(sharding), num_dbs, keys


def by_the_library(sharding: dict[str, Any], rows: list[dict[str, Any]]) -> list[Any]:
    """Return the library's results for rows, with a `shard_hash` of xxhash alone."""

    def digest(value: int | str) -> int:
        text = value.encode() if isinstance(value, str) else value.to_bytes(8, "little", signed=True)
        return xxhash.xxh3_64_intdigest(text)

    overloads = [
        cel.Overload("h_int", cel.Type.UINT, [cel.Type.INT], impl=digest),
        cel.Overload("h_string", cel.Type.UINT, [cel.Type.STRING], impl=digest),
    ]
    environment = cel.NewEnv(
        variables={name: getattr(cel.Type, kind.upper()) for name, kind in sharding["cel_columns"].items()},
        functions=[cel.FunctionDecl("shard_hash", overloads)],
    )
    compiled = environment.compile(sharding["cel_expr"])
    return [compiled.eval(data={name: row[name] for name in sharding["cel_columns"]}).plain_value() for row in rows]


@pytest.mark.parametrize(
    ("name", "sharding", "values"),
    [
        pytest.param("number", cel_sharding("key % 4", {"key": "int"}), None, marks=pytest.mark.matrix),
        pytest.param("hash", cel_sharding("shard_hash(key) % 5u", {"key": "int"}), None, marks=pytest.mark.matrix),
        pytest.param(
            "values",
            cel_sharding("tier * 10", {"tier": "int"}, routing_values=[20, 0, 10, 30]),
            [20, 0, 10, 30],
            marks=pytest.mark.matrix,
        ),
        ("inferred", cel_sharding_by_columns("region"), [f"r{number}" for number in range(7)]),
        pytest.param("columns", cel_sharding_by_columns("region", TIER, num_shards=4), None, marks=pytest.mark.matrix),
        (
            "several",
            cel_sharding("region == 'r1' ? 0 : tier + int(key % 2)", {"region": "string", "tier": "int", "key": "int"}),
            None,
        ),
    ],
)
def test_each_row_is_in_the_shard_that_the_expression_gives(
    spark: SparkSession, s3: EmbeddedS3, name: str, sharding: ShardingSpec, values: list[Any] | None
) -> None:
    """In an expression `key` is the key column, whatever its name; a reader finds each row again."""
    frame = users(spark)
    build(frame, name, sharding)

    rule, num_dbs, found = manifest_of(s3, prefix_of(name))
    rows = [{**row.asDict(), "key": row["id"]} for row in frame.collect()]
    wanted: dict[int, set[int]] = {}
    for row, token in zip(rows, by_the_library(rule, rows), strict=True):
        wanted.setdefault(token if values is None else values.index(token), set()).add(row["id"])
    assert found == wanted
    assert num_dbs == (max(wanted) + 1 if values is None else len(values))
    assert rule.get("routing_values") == values
    with SnapshotReader(prefix_of(name)) as reader:
        for row in rows[::50]:
            context = {column: row[column] for column in ("region", "tier")}
            assert reader.get(row["id"], routing_context=context) == row["v"].encode()
        if {"region", "tier"} & set(sharding.cel_columns):
            with pytest.raises(RoutingContextError):
                reader.get(7919)


def test_a_reader_finds_nothing_by_a_value_that_no_row_had(spark: SparkSession) -> None:
    """The same as for a missing key."""
    build(users(spark), "unknown", cel_sharding_by_columns("region"))
    with SnapshotReader(prefix_of("unknown")) as reader:
        assert reader.multi_get([0, 7919], routing_context={"region": "r99"}) == {0: None, 7919: None}
        assert reader.route(0, routing_context={"region": "r99"}) is None


@pytest.mark.parametrize(
    ("sharding", "problem"),
    [
        (cel_sharding("key +", {"key": "int"}), "'key \\+' is none: .*Syntax error"),
        (cel_sharding("area", {"area": "string"}, routing_values=["a"]), "there is no column 'area'"),
        (cel_sharding("tier", {"tier": "string"}, routing_values=["a"]), "'tier' has the type int; as string"),
        (cel_sharding("key", {"key": "string"}, routing_values=["a"]), "'id' has the type bigint; as string"),
        (cel_sharding("key > 1", {"key": "int"}), "gives bool"),
        (cel_sharding("region", {"region": "string"}), "give routing_values, or infer_routing_values_from_data"),
        (cel_sharding("shard_hash(key) % 70000u", {"key": "int"}), "asks for 70,000 shards"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_before_anything_is_read(
    spark: SparkSession, sharding: ShardingSpec, problem: str
) -> None:
    """A read of this source would raise an error."""
    unreadable = (
        users(spark).selectExpr("*", "string(raise_error('it was read')) AS w").drop("v").withColumnRenamed("w", "v")
    )
    with pytest.raises(ConfigValidationError, match=f"(?s){problem}"):
        build(unreadable, "bad", sharding)
    assert open_store(Location.parse(prefix_of("bad"))).get("_CURRENT") is None


@pytest.mark.parametrize(
    ("rows", "sharding", "problem"),
    [
        (3, cel_sharding("key * 2", {"key": "int"}), "up to 4, but no row has 1, 3"),
        (3, cel_sharding("key - 1", {"key": "int"}), "the row with key 0 gives -1"),
        pytest.param(
            3,
            cel_sharding("10 / key", {"key": "int"}),
            "the row with key 0 .*divide by zero",
            marks=pytest.mark.matrix,
        ),
        pytest.param(
            70_000, cel_sharding("key", {"key": "int"}), "gives 10000, and a shard has", marks=pytest.mark.matrix
        ),
        pytest.param(70_000, EACH, "gives more than 10000 different values", marks=pytest.mark.matrix),
    ],
)
def test_data_that_gives_no_shards_fails_the_build(
    spark: SparkSession, rows: int, sharding: ShardingSpec, problem: str
) -> None:
    """The error names the row; nothing is written."""
    frame = spark.range(rows).selectExpr("id", "'v' AS v")
    with pytest.raises(ShardAssignmentError, match=f"(?s){problem}"):
        build(frame, "data", sharding)
    assert open_store(Location.parse(prefix_of("data"))).get("_CURRENT") is None


def test_a_null_key_fails_the_search_for_values(spark: SparkSession) -> None:
    """The error is the usual one of a null key."""
    with pytest.raises(KeyRangeError, match="a key is null"):
        build(
            users(spark).selectExpr("nullif(id, 7919) AS id", "region", "v"), "null", cel_sharding_by_columns("region")
        )


def test_a_source_that_changes_between_two_readings_fails_the_build(spark: SparkSession) -> None:
    """A row with a value that was not found in the first read belongs to no shard."""
    from pyspark.sql import functions

    changing = functions.udf(lambda _: uuid.uuid4().hex).asNondeterministic()
    frame = spark.range(20).withColumn("region", changing("id")).withColumn("v", functions.lit("v"))
    with pytest.raises(ShardAssignmentError, match=r"which is no one of 20 routing values.*has to be cached first"):
        build(frame, "changing", cel_sharding_by_columns("region"))
    assert open_store(Location.parse(prefix_of("changing"))).get("_CURRENT") is None


@pytest.mark.parametrize("sharding", [cel_sharding_by_columns("region"), cel_sharding("tier", {"tier": "int"})])
def test_a_source_without_rows_makes_an_empty_snapshot(spark: SparkSession, sharding: ShardingSpec) -> None:
    """It has one shard, as shardyfusion counts."""
    build(users(spark).where("false"), "empty", sharding)
    with SnapshotReader(prefix_of("empty")) as reader:
        assert (reader.manifest.num_dbs, reader.manifest.rows) == (1, 0)
        assert reader.get(1, routing_context={"region": "r1", "tier": 0}) is None
