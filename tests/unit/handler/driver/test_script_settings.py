"""The driver leaves out Spark settings of a script that bypass the guard or cannot work here, and says why."""

from __future__ import annotations

from typing import Any

import pytest

from handler.driver.script_settings import EXTENSIONS, OwnSettings, why_left_out
from handler.spark_settings.catalogs import in_image

DELTA, ICEBERG = "io.delta.sql.DeltaSparkSessionExtension", "org.apache.iceberg.spark.extensions.X"
GIVEN = {"spark.master": "local[2]", EXTENSIONS: f"{DELTA},{ICEBERG}", "spark.hadoop.fs.s3a.endpoint": "http://here"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.app.name", "mine"),
        ("spark.master", "LOCAL[2]"),
        ("spark.serializer", "org.apache.spark.serializer.KryoSerializer"),
        ("spark.sql.shuffle.partitions", "7"),
        ("spark.sql.catalog.glue", "org.apache.iceberg.spark.SparkCatalog"),
        ("spark.hadoop.hive.metastore.client.factory.class", "com.amazonaws.glue.X"),
        ("spark.hadoop.fs.s3a.connection.maximum", "50"),
        ("spark.hadoop.fs.s3a.bucket.theirs.access.key", "AKIA"),
        ("spark.hadoop.fs.s3a.bucket.theirs.aws.credentials.provider", "X"),
        ("spark.sql.warehouse.dir", "/tmp/warehouse"),
        ("spark.sql.warehouse.dir", "s3a://lake/warehouse"),
        ("spark.jars", "/opt/mine.jar"),
        ("fs.s3a.connection.maximum", "50"),
    ],
)
def test_what_is_a_script_s_to_set(key: str, value: str) -> None:
    """A script may set names, tuning, catalogs and keys for one bucket; and any setting to the handler's own value."""
    assert why_left_out(key, value, GIVEN.get(key)) is None


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("spark.master", "local[*]", "local Spark"),
        ("spark.master", "yarn", "local Spark"),
        ("spark.remote", "sc://elsewhere", "local Spark"),
        ("spark.driver.memory", "5g", "function's memory"),
        ("spark.executor.memory", "5g", "no executors"),
        ("spark.dynamicAllocation.enabled", "true", "no executors"),
        ("spark.jars.packages", "io.delta:delta-core_2.12:2.2.0", "derived image"),
        ("spark.sql.catalogImplementation", "hive", "Hive"),
        ("spark.ui.enabled", "true", "timings"),
        ("spark.hadoop.fs.s3a.access.key", "AKIA", "share the function's role"),
        ("fs.s3a.secret.key", "x", "share the function's role"),
        ("spark.hadoop.fs.s3a.aws.credentials.provider", "X", "share the function's role"),
        ("spark.hadoop.fs.s3a.endpoint", "http://elsewhere", "one store"),
        ("fs.s3a.endpoint", "http://elsewhere", "one store"),
        ("spark.delta.logStore.s3a.impl", "io.delta.storage.S3SingleDriverLogStore", "guarantees"),
        ("spark.hadoop.fs.file.impl", "org.apache.hadoop.fs.LocalFileSystem", "guarantees"),
        ("spark.sql.catalog.spark_catalog", "org.apache.iceberg.spark.SparkSessionCatalog", "guarantees"),
        ("spark.sql.catalog.safewriter", "org.apache.iceberg.spark.SparkCatalog", "guarantees"),
        ("spark.sql.warehouse.dir", "/user/hive/warehouse", "outside /tmp"),
    ],
)
def test_what_is_left_out(key: str, value: str, why: str) -> None:
    """Settings without meaning here, ones that would bypass the guard, and unwritable paths, each with its reason."""
    assert why in str(why_left_out(key, value, GIVEN.get(key)))


def own() -> tuple[OwnSettings, list[tuple[str, str]]]:
    noted: list[tuple[str, str]] = []
    return OwnSettings(lambda key, why: noted.append((key, why))), noted


def test_a_builder_s_options_are_told_once_and_without_values() -> None:
    """A second session with the same settings reports nothing new; extensions are added to the handler's."""
    settings, noted = own()
    options = {"spark.app.name": "mine", "spark.hadoop.fs.s3a.secret.key": "hunter22", EXTENSIONS: f"a.B, {DELTA}"}
    for _ in range(2):
        kept = settings.kept(options, GIVEN.get)
        assert kept == {"spark.app.name": "mine", EXTENSIONS: f"{DELTA},{ICEBERG},a.B"}
    assert [key for key, _ in noted] == ["spark.hadoop.fs.s3a.secret.key"]
    assert "hunter22" not in str(noted)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"spark.hadoop.fs.s3a.bucket.theirs.secret.key": "hunter22"}, True),
        ({"spark.sql.catalog.lake.token": "hunter22"}, True),
        ({"spark.sql.catalog.owners.token": "hunter22"}, False),
        ({"spark.sql.catalog.owners.token": "another1"}, True),
        ({"spark.sql.shuffle.partitions": "7"}, False),
    ],
)
def test_a_secret_of_the_script_s_own_is_told(options: dict[str, str], told: bool) -> None:  # noqa: FBT001 - a case
    """In a builder and in a SparkConf, without key and value; the handler's own secrets do not count."""
    given = {**GIVEN, "spark.sql.catalog.owners.token": "hunter22"}
    for use in ("builder", "conf"):
        seen: list[None] = []
        settings = OwnSettings(lambda *_: None, on_secret=lambda seen=seen: seen.append(None))  # type: ignore[misc]
        if use == "builder":
            settings.kept(options, given.get)
        else:
            settings._put_back(Conf({**given, **options}), Conf(given))
        assert bool(seen) is told, use


class Conf(dict[str, str]):
    """Java's SparkConf, with the methods that are used."""

    def toDebugString(self) -> str:  # noqa: N802 - Java's name
        return "\n".join(f"{key}={'*(redacted)' if 'secret' in key else value}" for key, value in self.items())

    def set(self, key: str, value: str) -> None:
        self[key] = value

    def remove(self, key: str) -> None:
        del self[key]


def test_a_spark_conf_is_put_back() -> None:
    """A setting that the script changed gets the handler's value again, or is removed; the rest stays."""
    settings, noted = own()
    conf: Any = Conf(GIVEN)
    conf.update(
        {
            "spark.master": "yarn",
            "spark.hadoop.fs.s3a.secret.key": "hunter22",
            EXTENSIONS: "a.B",
            "spark.x": "y",
        }
    )
    settings._put_back(conf, Conf(GIVEN))
    assert conf == {**GIVEN, EXTENSIONS: f"{DELTA},{ICEBERG},a.B", "spark.x": "y"}
    assert [key for key, _ in noted] == ["spark.master", "spark.hadoop.fs.s3a.secret.key"]


CATALOG = {"spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog"}
MARKED = in_image(CATALOG)


@pytest.mark.parametrize(
    ("options", "added"),
    [
        (CATALOG, MARKED),
        ({**CATALOG, **dict.fromkeys(MARKED, "own")}, {}),
        ({"spark.sql.catalog.other": "example.Catalog"}, {}),
    ],
)
def test_a_catalog_of_the_script_s_own_goes_to_s3_as_spark_does(options: dict[str, str], added: dict[str, str]) -> None:
    """It gets the same settings as a catalog in the event: with marked files, unless it says otherwise."""
    settings, noted = own()
    assert settings.kept(options, GIVEN.get) == {**options, **added}
    conf: Any = Conf({**GIVEN, **options})
    settings._put_back(conf, Conf(GIVEN))
    assert conf == {**GIVEN, **options, **added}
    assert noted == []


def test_what_the_handler_has_said_of_a_catalog_stays() -> None:
    """The event sets the catalog's access to S3, the script the rest."""
    settings, _ = own()
    given = dict.fromkeys(MARKED, "events.own")
    assert settings.kept(CATALOG, given.get) == CATALOG
