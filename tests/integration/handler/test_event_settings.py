"""The allow-list of settings, checked against Spark, Delta, Hadoop and Iceberg: their names, and their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from handler.spark_settings.allowed import ALLOWED, Form, form_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CANDIDATES = [
    *("true", "false", "TRUE", "-1", "0", "1", "2", "7", "22", "99", "2147483647", "0.5", "1.0", "64m", "512mb", "1g"),
    *("100", "30s", "5m", "200ms", "1h", "UTC", "Europe/Vienna", "+02:00", "static", "DYNAMIC"),
    *("ANSI", "legacy", "STRICT", "EXCEPTION", "CORRECTED", "LAST_WIN", "INT96", "TIMESTAMP_MICROS", "FIFO", "FAIR"),
    *("TIMESTAMP_MILLIS", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "none", "uncompressed", "snappy", "gzip", "zstd", "lz4"),
    *("zlib", "lzf", "id", "name", "classic", "v2", "some_name", "in-memory", "a note"),
    "org.apache.spark.serializer.KryoSerializer",
    "org.apache.spark.serializer.JavaSerializer",
]
"""Values of every form; those that a form accepts are its own."""
GARBAGE = "no such value"
NOT_REGISTERED = ("spark.app.name",)
"""Spark reads it by name."""
CONSTANTS = (
    "org/apache/hadoop/fs/s3a/Constants",
    "org/apache/hadoop/mapreduce/lib/output/FileOutputCommitter",
    "org/apache/iceberg/CatalogProperties",
    "org/apache/iceberg/CatalogUtil",
    "org/apache/iceberg/aws/AwsProperties",
    "org/apache/iceberg/spark/SparkCatalog",
    "org/apache/iceberg/spark/Spark3Util",
)
"""Classes whose constants are names of settings."""


def values_of(form: Form) -> list[str]:
    return [value for value in CANDIDATES if form.fits(value)]


@pytest.fixture(scope="module")
def entries(spark: SparkSession) -> Any:
    """Spark's registry of settings, including Delta's once one of its classes is loaded."""
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.delta.sources.DeltaSQLConf.DELTA_SNAPSHOT_PARTITIONS()
    return jvm.org.apache.spark.internal.config.ConfigEntry


def refused(entry: Any, value: str) -> bool:
    try:
        entry.valueConverter().apply(value)
    except (Py4JJavaError, PySparkException):  # PySpark converts some
        return True
    return False


def plain_names() -> list[str]:
    return [
        name
        for name in ALLOWED
        if not name.startswith(("spark.hadoop.", "spark.sql.catalog.", "spark.databricks.delta.properties.defaults."))
        and name not in NOT_REGISTERED
    ]


def test_each_setting_is_one_of_spark_s_and_takes_every_value_of_its_form(entries: Any) -> None:
    """A name that Spark does not know, or a value that it refuses, would be a false promise to callers."""
    wrong = []
    for name in plain_names():
        entry = entries.findEntry(name)
        if entry is None:
            wrong.append(f"{name}: Spark has no such setting")
            continue
        values = values_of(ALLOWED[name])
        assert values or name == "spark.sql.extensions", f"{name}: no candidate has its form"
        wrong += [f"{name}: Spark refuses {value}" for value in values if refused(entry, value)]
    assert wrong == []


def test_no_form_takes_what_spark_refuses(entries: Any) -> None:
    """Each value that Spark's own check refuses is refused before Java starts."""
    names = [name for name in plain_names() if refused(entries.findEntry(name), GARBAGE)]

    assert len(names) > 100
    assert [name for name in names if ALLOWED[name].fits(GARBAGE)] == []


def test_defaults_of_delta_s_table_properties_are_taken_by_delta(spark: SparkSession) -> None:
    """Delta turns them into properties of a new table, and refuses unknown ones."""
    jvm: Any = spark._jvm
    nothing = getattr(jvm, "scala.collection.immutable.Map$EmptyMap$").__getattr__("MODULE$")
    no_limit = getattr(jvm, "scala.None$").__getattr__("MODULE$")
    prefix = "spark.databricks.delta.properties.defaults."
    for name in (name for name in ALLOWED if name.startswith(prefix)):
        values = values_of(ALLOWED[name])
        assert values
        for value in values:
            conf = jvm.org.apache.spark.sql.internal.SQLConf()
            conf.setConfString(name, value)
            made = jvm.org.apache.spark.sql.delta.DeltaConfigs.mergeGlobalConfigs(conf, nothing, no_limit)
            assert made.toString() == f"Map(delta.{name.removeprefix(prefix)} -> {value})"


def test_names_of_s3a_and_iceberg_are_constants_of_theirs(spark: SparkSession) -> None:
    """Hadoop and Iceberg ignore unknown settings, so the name must be in one of their own classes."""
    loader: Any = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]
    classes = b"".join(bytes(loader.getResourceAsStream(f"{name}.class").readAllBytes()) for name in CONSTANTS)
    used = {
        name.removeprefix("spark.hadoop.")
        .replace("fs.s3a.bucket.BUCKET.", "fs.s3a.")
        .removeprefix("spark.sql.catalog.NAME.")
        for name in ALLOWED
        if name.startswith(("spark.hadoop.", "spark.sql.catalog.NAME."))
    }

    # A string of a class file is preceded by its length.
    assert [name for name in used if len(name).to_bytes(2, "big") + name.encode() not in classes] == []


def test_a_key_is_read_as_a_whole() -> None:
    """Text before, after or between the parts of an allowed name makes another setting."""
    assert form_of("spark.sql.shuffle.partitions") is not None
    assert form_of("spark.sql.catalog.lake.warehouse") is not None
    for key in (
        "xspark.sql.shuffle.partitions",
        "spark.sql.shuffle.partitions.more",
        "spark.sql.SHUFFLE.partitions",
        "spark.sql.catalog.lake.other.warehouse",
        "spark.sql.catalog.lake.hadoop.warehouse",
        "spark.hadoop.fs.s3a.bucket.a/b.endpoint.region",
        "spark.sql.catalog..warehouse",
    ):
        assert form_of(key) is None
