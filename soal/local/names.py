"""The names of the local S3 and its Iceberg catalog, for jobs, commands and pyiceberg."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

REGION: Final = "us-east-1"
CREDENTIALS: Final = {
    "AWS_ACCESS_KEY_ID": "AKIACLIENT",
    "AWS_SECRET_ACCESS_KEY": "not-a-secret",
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""Variables for a client of the local S3, which checks no signatures; the caller adds the endpoint."""

SCRIPTS: Final = "soal-scripts"
DATA: Final = "soal-data"
LAKE: Final = "soal-lake"
CHECKPOINTS: Final = "soal-checkpoints"
BUCKETS: Final = (SCRIPTS, DATA, LAKE, CHECKPOINTS)
SOURCE_KEY: Final = "accommodations.csv"

CATALOG: Final = "local"
WAREHOUSE: Final = f"s3a://{LAKE}/warehouse"


def rest_properties(uri: str) -> dict[str, str]:
    """Return the properties of a REST catalog, the same for Iceberg and pyiceberg."""
    return {"type": "rest", "uri": uri}


def spark_settings(name: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return Spark's settings of a catalog."""
    prefix = f"spark.sql.catalog.{name}"
    options = {f"{prefix}.{key}": value for key, value in properties.items()}
    return {prefix: "org.apache.iceberg.spark.SparkCatalog", **options}
