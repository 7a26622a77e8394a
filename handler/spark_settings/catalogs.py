"""Give Iceberg catalogs in a job's settings what the image has: S3A for their files, and an HTTP client for AWS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["HTTP_CLIENT", "in_image"]

_CATALOGS: Final = ("org.apache.iceberg.spark.SparkCatalog", "org.apache.iceberg.spark.SparkSessionCatalog")
_DOTS: Final = "spark.sql.catalog.NAME".count(".")
HTTP_CLIENT: Final[Mapping[str, str]] = {"http-client.type": "urlconnection"}
"""Iceberg's default is the SDK's `apache5-client`, which the image's line of the SDK does not have."""
# Iceberg's S3FileIO needs AWS clients that the image does not have.
_OURS: Final = {"io-impl": "org.apache.iceberg.hadoop.HadoopFileIO", **HTTP_CLIENT}


def in_image(conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings to add: those of `io-impl` and `http-client.type` that an Iceberg catalog does not set."""
    catalogs = (
        key
        for key, value in conf.items()
        if key.startswith("spark.sql.catalog.") and key.count(".") == _DOTS and value in _CATALOGS
    )
    ours = {f"{key}.{name}": value for key in catalogs for name, value in _OURS.items()}
    return {key: value for key, value in ours.items() if key not in conf}
