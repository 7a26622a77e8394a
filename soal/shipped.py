"""The Spark settings that the image ships."""

from __future__ import annotations

import tempfile
from typing import Final

from handler.spark.properties import read_properties
from soal.source_paths import SPARK_DEFAULTS

_PROVIDER: Final = "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider"


def shipped_settings() -> dict[str, str]:
    """Return the settings of image/spark/spark-defaults.conf."""
    return read_properties(SPARK_DEFAULTS)


def local_settings() -> dict[str, str]:
    """Return the shipped settings for a session without a handler, with credentials from the environment."""
    return {
        **shipped_settings(),
        "spark.hadoop.fs.s3a.aws.credentials.provider": _PROVIDER,
        "spark.hadoop.fs.s3a.assumed.role.credentials.provider": _PROVIDER,
        # Hadoop's default is relative to the folder in which the handler starts Java.
        "spark.hadoop.fs.s3a.buffer.dir": tempfile.gettempdir(),
    }
