"""Give Iceberg catalogs without an `io-impl` in a job's settings S3A."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["file_io"]

_CATALOGS: Final = ("org.apache.iceberg.spark.SparkCatalog", "org.apache.iceberg.spark.SparkSessionCatalog")
_DOTS: Final = "spark.sql.catalog.NAME".count(".")
# Iceberg's S3FileIO needs AWS clients that the image does not have.
_FILE_IO: Final = "org.apache.iceberg.hadoop.HadoopFileIO"


def file_io(conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings to add: `io-impl` for each Iceberg catalog without one."""
    keys = (
        f"{key}.io-impl"
        for key, value in conf.items()
        if key.startswith("spark.sql.catalog.") and key.count(".") == _DOTS and value in _CATALOGS
    )
    return {key: _FILE_IO for key in keys if key not in conf}
