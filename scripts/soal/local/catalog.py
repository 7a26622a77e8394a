"""The Iceberg catalog of `soal local up --iceberg`, as Spark and pyiceberg name it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scripts.soal.local.sample import LAKE

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CATALOG", "WAREHOUSE", "rest_properties", "spark_settings"]

CATALOG: Final = "local"
WAREHOUSE: Final = f"s3a://{LAKE}/warehouse"


def rest_properties(uri: str) -> dict[str, str]:
    """Return the properties of a REST catalog, the same for Iceberg and pyiceberg."""
    return {"type": "rest", "uri": uri}


def spark_settings(name: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return Spark's settings of a catalog."""
    prefix = f"spark.sql.catalog.{name}"
    own = {f"{prefix}.{key}": value for key, value in properties.items()}
    return {prefix: "org.apache.iceberg.spark.SparkCatalog", **own}
