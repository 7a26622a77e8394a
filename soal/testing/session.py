"""The settings of a guarded Spark session on an S3 of this machine."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from safewriter.errors import UsageError
from safewriter.session import SETTINGS, log_store_jar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["SHORT_LIVED", "session_settings"]

SHORT_LIVED: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java's options for a JVM of a test: the second compiler takes more of its seconds than it gives back."""
_HADOOP: Final = "hadoop-client-api-"


def session_settings(endpoint: str, jars: Sequence[Path] = ()) -> dict[str, str]:
    """Return the settings of a session with Delta, S3A and SafeWriter.

    `jars` are those of Delta and hadoop-aws, with what they need, and any others; without one Spark fetches Delta and
    hadoop-aws from Maven Central, in the versions of the Python packages `delta-spark` and `pyspark`. Raises
    `UsageError` if SafeWriter's jar or the package `delta-spark` is missing.
    """
    fetched = {} if jars else {"spark.jars.packages": ",".join(_coordinates())}
    return {
        "spark.master": "local[2]",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "spark.hadoop.fs.s3a.endpoint": endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        **SETTINGS,
        **fetched,
        "spark.jars": ",".join(str(jar) for jar in (*jars, log_store_jar())),
    }


def _coordinates() -> Iterator[str]:
    """Yield the Maven coordinates of Delta and hadoop-aws."""
    import pyspark

    try:
        delta = version("delta-spark")
    except ModuleNotFoundError:
        raise UsageError("pip install delta-spark, or name jars by the ini option soal_jars") from None
    spark = ".".join(pyspark.__version__.split(".")[:2])
    yield f"io.delta:delta-spark_{spark}_2.13:{delta}"
    (hadoop,) = Path(pyspark.__file__).with_name("jars").glob(f"{_HADOOP}*.jar")
    yield f"org.apache.hadoop:hadoop-aws:{hadoop.stem.removeprefix(_HADOOP)}"
