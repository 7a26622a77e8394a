"""A Spark session of this process for a build: the image's settings and jars, on the S3 of a command."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal

import boto3

from handler.spark.classpath import jars
from safewriter.environment import variables_set
from soal.console.problem import Problem
from soal.home import pyspark_of
from soal.shipped import local_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from soal.home import Home
    from soal.target import Target

__all__ = ["Format", "frame_of", "spark_on"]

Format = Literal["parquet", "csv", "delta", "json"]
_DEFAULT_REGION: Final = "us-east-1"


@contextmanager
def spark_on(found: Target, home: Home) -> Iterator[SparkSession]:
    """Start Spark with as many threads as this machine has. What the build itself asks of S3 goes the same way."""
    spark_home = pyspark_of(home.path)
    if spark_home is None:
        raise Problem("PySpark is not installed", todo="install it with: scripts/setup")
    # The tasks import packages that stand beside this Python.
    with variables_set({**_aws(found), "PYSPARK_PYTHON": sys.executable}):
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[*]").appName("soal snapshot build")
        for key, value in _settings(found, ":".join(str(jar) for jar in jars(spark_home, home.path))).items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        try:
            yield spark
        finally:
            spark.stop()


def frame_of(
    spark: SparkSession, paths: list[str], form: Format, options: Mapping[str, str] | None = None
) -> DataFrame:
    """Read files; CSV with a header, and types as its values have them. `options`: those of Spark's reader."""
    reader = spark.read.format(form)
    if form == "csv":
        reader = reader.options(header=True, inferSchema=True)
    reader = reader.options(**(options or {}))
    if form == "delta" and len(paths) > 1:
        raise Problem("a Delta table is one path", todo="build from one table")
    return reader.load(paths[0] if form == "delta" else paths)


def _settings(found: Target, class_path: str) -> dict[str, str]:
    settings = {
        **local_settings(),
        "spark.driver.extraClassPath": class_path,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
    }
    if found.endpoint is not None:
        settings |= {
            "spark.hadoop.fs.s3a.endpoint": found.endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": found.aws["AWS_REGION"],
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": str(found.endpoint.startswith("https")).lower(),
        }
    return settings


def _aws(found: Target) -> dict[str, str]:
    """Return the variables by which Java and the tasks reach S3: neither reads the caller's profile."""
    if found.endpoint is not None:
        return dict(found.aws)
    found.client()  # raises Problem without credentials
    session = boto3.session.Session()
    credentials = session.get_credentials()
    if credentials is None:
        raise AssertionError  # for the type checker
    frozen = credentials.get_frozen_credentials()
    region = session.region_name or _DEFAULT_REGION
    told = {
        "AWS_ACCESS_KEY_ID": frozen.access_key,
        "AWS_SECRET_ACCESS_KEY": frozen.secret_key,
        "AWS_SESSION_TOKEN": frozen.token,
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
    }
    return {name: value for name, value in told.items() if value}
