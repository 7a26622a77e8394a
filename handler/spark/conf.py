"""Compose the Spark settings of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from handler.spark.installation import spark_file
from handler.spark.machine import heap_mb
from handler.spark.properties import read_properties
from handler.spark_settings.catalogs import in_image
from handler.spark_settings.own_disk import OWN_DISK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from handler.sandbox.sandbox import Sandbox
    from handler.secrets import Secrets
    from handler.settings import HandlerSettings
    from handler.spark.machine import Machine

__all__ = ["merged_conf"]

_MASKED_BY_SPARK: Final = (
    "(?i)secret|pass[_-]?(word|wd|phrase|code)|pwd|token|credential|authorization|(api|access|account|private)[._-]?key"
    "|connection[._-]?string|access[._-]?signature|(header|set)[._-]?cookie"
    "|(client|oauth2?|jwt)[._-]?assertion|(?<![a-z])sas[0-9]*(?![a-z])"
)
"""What Spark itself masks in its event log: its own names and the handler's (`secret_names`), no form of a value. Spark
masks in `SHOW TBLPROPERTIES`, too, what this matches. The handler searches for more when it keeps the log.
"""


def merged_conf(
    job_conf: Mapping[str, str], sandbox: Sandbox, settings: HandlerSettings, machine: Machine, secrets: Secrets
) -> dict[str, str]:
    """Merge the settings: the image's defaults, the machine's, the job's own, and those that must not change."""
    defaults = read_properties(spark_file(settings.soal_home, "spark-defaults.conf"))
    cores = int(job_conf.get("spark.driver.cores", machine.cores))
    conf = {
        **defaults,
        "spark.sql.shuffle.partitions": str(2 * cores),
        "spark.default.parallelism": str(cores),
        "spark.sql.warehouse.dir": str(sandbox.work / "warehouse"),
        **OWN_DISK,
        **job_conf,
        **secrets.spark_settings,
        "spark.master": f"local[{cores}]",
        "spark.driver.memory": f"{heap_mb(job_conf, machine)}m",
        # Hadoop's defaults name the same folders, but relative to the JVM's first directory.
        "spark.hadoop.hadoop.tmp.dir": str(sandbox.tmp),
        "spark.hadoop.fs.s3a.buffer.dir": str(sandbox.tmp / "s3a"),
        "spark.hadoop.io.seqfile.local.dir": str(sandbox.tmp / "io"),
        "spark.hadoop.mapreduce.cluster.local.dir": str(sandbox.tmp / "mapred"),
        **_store(settings),
        **(_event_log(sandbox) if settings.event_logs == "on" else {}),
    }
    conf |= in_image(conf)
    extensions = (defaults.get("spark.sql.extensions", ""), job_conf.get("spark.sql.extensions", ""))
    conf["spark.sql.extensions"] = ",".join(dict.fromkeys(name for name in ",".join(extensions).split(",") if name))
    return conf


def _event_log(sandbox: Sandbox) -> dict[str, str]:
    """Let Spark write each application's events to one file of text, which the handler masks and keeps."""
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": sandbox.event_logs.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        "spark.redaction.regex": _MASKED_BY_SPARK,
    }


def _store(settings: HandlerSettings) -> dict[str, str]:
    """Point S3A to boto3's endpoint."""
    region = {"spark.hadoop.fs.s3a.endpoint.region": settings.region} if settings.region else {}
    if settings.s3_endpoint is None:
        return region
    return {
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        **region,
        "spark.hadoop.fs.s3a.endpoint": settings.s3_endpoint,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": str(settings.s3_endpoint.startswith("https://")).lower(),
    }
