"""Writes to the function's own disk, found before the job runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.soal.doctor.examined import look

if TYPE_CHECKING:
    from pathlib import Path

EMPTIED = "the function's own disk"
PATHS = (
    "frame.write.parquet('output/report')",
    "frame.write.format('delta').save('/tmp/lake/x')",
    "frame.write.format('delta').mode('overwrite').save(path='/mnt/lake/x')",
    "frame.write.csv('file:///tmp/x', header=True)",
    "frame.write.mode('append').json('/tmp/x')",
    "frame.write.option('path', '/tmp/x').saveAsTable('t')",
    "frame.write.options(path='/tmp/x').save()",
    "OUT = '/tmp/out'\nframe.write.parquet(OUT)",
    "OUT = '/tmp/out'\nframe.write.parquet(f'{OUT}/{day}')",
    "frame.write.parquet('out/' + day)",
    "writer = frame.write.mode('append')\nwriter.save('/tmp/x')",
    "rdd.saveAsTextFile('/tmp/x')",
    "rdd.saveAsPickleFile('x')",
    "model.write().overwrite().save('/tmp/model')",
    "rows.writeStream.option('checkpointLocation', '/tmp/state').start('s3a://lake/x')",
    "rows.writeStream.options(checkpointLocation='/tmp/state').start('s3a://lake/x')",
    "rows.writeStream.option('checkpointLocation', 's3a://lake/state').start('/tmp/x')",
    "spark.conf.set('spark.sql.streaming.checkpointLocation', '/tmp/state')",
    "spark.sql(\"CREATE TABLE t USING delta LOCATION '/tmp/x' AS SELECT 1 AS id\")",
    "spark.sql(\"CREATE DATABASE sales LOCATION 'file:/tmp/x'\")",
    "spark.sql(\"INSERT OVERWRITE DIRECTORY '/tmp/x' USING parquet SELECT 1\")",
    "spark.sql(\"INSERT OVERWRITE LOCAL DIRECTORY '/tmp/x' SELECT 1\")",
    'spark.sql("INSERT INTO delta.`/tmp/x` SELECT 1")',
    "DeltaTable.createIfNotExists(spark).addColumn('id', 'int').location('/tmp/x').execute()",
)
TABLES = (
    "frame.write.format('delta').mode('append').saveAsTable('orders_clean')",
    "frame.write.saveAsTable('sales.orders')",
    "frame.write.saveAsTable('spark_catalog.sales.orders')",
    "frame.write.insertInto('orders')",
    "NAME = 'orders'\nframe.write.insertInto(NAME)",
    "frame.writeTo('sales.x').create()",
    "rows.writeStream.option('checkpointLocation', 's3a://lake/state').toTable('orders')",
    "spark.sql('CREATE TABLE orders AS SELECT 1 AS id')",
    "spark.sql('CREATE OR REPLACE TABLE `sales`.`orders` USING delta AS SELECT 1 AS id')",
    "spark.sql('CREATE TABLE IF NOT EXISTS orders (id INT)')",
    "spark.sql(f'INSERT INTO orders SELECT {day} AS day')",
    "spark.sql('INSERT OVERWRITE TABLE sales.orders SELECT 1 AS id')",
)
ELSEWHERE = (
    "frame.write.parquet('s3a://lake/x')",
    "frame.write.parquet(path)",
    "frame.write.parquet(f'{base}/x')",
    "frame.write.parquet(tempfile.mkdtemp() + '/x')",
    "frame.write.saveAsTable('lake.sales.orders')",
    "frame.write.option('path', 's3a://lake/x').saveAsTable('orders')",
    "frame.write.format('iceberg').mode('append').save('lake.db.t')",
    "frame.writeTo('lake.sales.x').append()",
    "frame.writeTo(table).append()",
    "frame.writeTo('delta.`s3a://lake/x`').append()",
    "frame.writeTo(f'delta.`{place}`').append()",
    "frame.writeTo(f'lake.{name}').append()",
    "spark.conf.set('spark.sql.catalog.lake', C)\nframe.writeTo('lake.x').append()",
    "spark.conf.set('spark.sql.defaultCatalog', 'lake')\nframe.writeTo('sales.x').append()",
    "spark.sql('USE lake.sales')\nframe.writeTo('x').append()",
    "spark.catalog.setCurrentCatalog('lake')\nframe.writeTo('sales.x').append()",
    "spark.sql(\"CREATE TABLE t USING delta LOCATION 's3a://lake/t'\")\nspark.sql('INSERT INTO t SELECT 1')",
    "spark.sql(f\"CREATE TABLE t USING delta LOCATION '{table}'\")\nframe.write.insertInto('t')",
    "spark.catalog.createTable('t', path='s3a://lake/t')\nframe.write.insertInto('t')",
    "spark.sql(\"CREATE TABLE t USING csv OPTIONS (path 's3a://lake/t')\")",
    "spark.sql(f'INSERT INTO {table} SELECT 1')",
    "spark.sql(f'INSERT OVERWRITE TABLE {table} SELECT 1')",
    "spark.sql(f'CREATE TABLE IF NOT EXISTS {table} (id INT)')",
    "spark.sql('INSERT INTO delta.`s3a://lake/t` SELECT 1')",
    "spark.sql('INSERT INTO lake.sales.t SELECT 1')",
    "spark.sql('CREATE DATABASE sales')",
    "spark.sql('CREATE TEMPORARY VIEW seen AS SELECT 1')",
    "spark.read.parquet('/tmp/x')",
    "spark.read.option('path', '/tmp/x').load()",
    "frame.toPandas().to_csv('/tmp/x.csv')",
    "image.save('/tmp/x.png')",
    "open('/tmp/x', 'w').write('x')",
    "spark.sparkContext.setCheckpointDir('/tmp/rdds')",
    "print('insert the table into the rack')",
)


def sinks(tmp_path: Path, text: str) -> list[tuple[str, str, str]]:
    found = [one for one in look(tmp_path, text) if EMPTIED in one.detail]
    return [(one.name, one.status, one.remedy) for one in found]


@pytest.mark.parametrize("text", PATHS)
def test_a_path_on_the_function_s_disk(tmp_path: Path, text: str) -> None:
    """A path on the disk is found if the script contains its text, or the start of it."""
    line = text.count("\n") + 1
    ((name, status, remedy),) = sinks(tmp_path, text)
    assert (name, status) == (f"job.py:{line}", "fail")
    assert "s3a://" in remedy
    assert "tempfile" in remedy


@pytest.mark.parametrize("text", TABLES)
def test_a_table_of_spark_s_own_catalog(tmp_path: Path, text: str) -> None:
    """A table of Spark's own catalog is found in every form of a write: its folder is on the disk."""
    line = text.count("\n") + 1
    ((name, status, remedy),) = sinks(tmp_path, text)
    assert (name, status) == (f"job.py:{line}", "fail")
    assert "Iceberg" in remedy


@pytest.mark.parametrize("text", ELSEWHERE)
def test_other_places(tmp_path: Path, text: str) -> None:
    """A bucket, an Iceberg catalog, reads, Python's own files, and paths known only at run time are left alone."""
    assert sinks(tmp_path, text) == []
