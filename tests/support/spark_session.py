"""Spark sessions of this process, with the image's settings, on an emulated S3."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from handler.spark.archive import archive_of
from handler.spark.classpath import jars
from scripts.image.trim import is_of, replaced
from scripts.provision.jars import OWN_JARS
from soal.home import Home, pyspark_of
from soal.shipped import local_settings
from soal.testing.session import SHORT_LIVED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

JARS = Home.of().jars
LOCAL_JARS = tuple(sorted(JARS.with_name("local-jars").glob("*.jar")))
"""Jars that no image has: databases for local Iceberg catalogs."""


def full_jars() -> tuple[Path, ...]:
    """Return the jars that the variant full adds, if `scripts/setup --only full-jars` has fetched them."""
    return tuple(sorted(JARS.with_name("full-jars").glob("*.jar")))


def stock_class_path() -> str:
    """Return the class path of Delta, Iceberg and S3A, for a Spark without SoAL's jars."""
    jars = sorted(JARS.resolve().glob("*.jar"))
    stock = [jar for jar in jars if jar.name not in OWN_JARS and not any(is_of(jar.name, name) for name in replaced())]
    return ":".join(map(str, stock))


def build_session(
    endpoint: str,
    master: str = "local[2]",
    settings: Mapping[str, str] | None = None,
    *,
    more_jars: Sequence[Path] = (),
) -> SparkSession:
    """Build a session with the environment's credentials. `settings` override; `more_jars` come last."""
    from pyspark.sql import SparkSession

    spark_home = pyspark_of(JARS.parent)
    if spark_home is None:
        raise RuntimeError("PySpark is not installed; run scripts/setup")
    builder = SparkSession.builder.master(master).appName("soal")
    conf = {
        **local_settings(),
        # As in the handler: the class path of the class-data archive, and a fast compiler.
        "spark.driver.extraClassPath": ":".join(str(jar) for jar in (*jars(spark_home, JARS.parent), *more_jars)),
        "spark.driver.extraJavaOptions": f"{_archive()} {_temporary()} {SHORT_LIVED}",
        "spark.executor.extraClassPath": ":".join(str(jar) for jar in (*sorted(JARS.glob("*.jar")), *more_jars)),
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.hadoop.fs.s3a.endpoint": endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        **(settings or {}),
    }
    for key, value in conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _temporary() -> str:
    return f"-Djava.io.tmpdir={tempfile.gettempdir()}"  # Java ignores TMPDIR


def _archive() -> str:
    archive = archive_of(JARS.parent)
    return f"-XX:SharedArchiveFile={archive} -Xshare:auto" if archive.is_file() else "-Xshare:auto"
