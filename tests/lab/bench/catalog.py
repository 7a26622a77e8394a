"""The Iceberg catalog of a benchmark, as session settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["CATALOG", "file_of", "in_file", "of_file", "settings"]

CATALOG: Final = "bench"
"""Its name in the session."""


def in_file(folder: Path, warehouse: str) -> dict[str, str]:
    """Return the settings of a catalog in a local file: its time is negligible beside that of S3."""
    return settings(of_file(folder, warehouse))


def file_of(folder: Path) -> Path:
    """Return the catalog's file."""
    return folder / "bench.db"


def of_file(folder: Path, warehouse: str) -> dict[str, str]:
    """Return the catalog's own properties."""
    uri = f"jdbc:sqlite:{file_of(folder)}"
    return {"type": "jdbc", "uri": uri, "jdbc.schema-version": "V1", "warehouse": warehouse}


def settings(where: Mapping[str, str]) -> dict[str, str]:
    """Return the session settings for a catalog; tables are read and written as in the image."""
    own = {**where, "io-impl": "org.apache.iceberg.hadoop.HadoopFileIO"}
    prefix = f"spark.sql.catalog.{CATALOG}"
    return {prefix: "org.apache.iceberg.spark.SparkCatalog", **{f"{prefix}.{key}": own[key] for key in own}}
