"""Iceberg's catalogs in a job's settings: those without an `io-impl` get S3A."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["file_io"]

_CATALOGS: Final = ("org.apache.iceberg.spark.SparkCatalog", "org.apache.iceberg.spark.SparkSessionCatalog")
_DOTS: Final = "spark.sql.catalog.NAME".count(".")
# Iceberg's own way to S3 needs clients of AWS that the image does not have.
_FILE_IO: Final = "org.apache.iceberg.hadoop.HadoopFileIO"


def file_io(conf: Mapping[str, str]) -> dict[str, str]:
    """Return settings to add: `io-impl` for each of Iceberg's catalogs that names none."""
    keys = (
        f"{key}.io-impl"
        for key, value in conf.items()
        if key.startswith("spark.sql.catalog.") and key.count(".") == _DOTS and value in _CATALOGS
    )
    return {key: _FILE_IO for key in keys if key not in conf}
