"""Spark's settings as the image ships them, read from the working tree."""

from __future__ import annotations

from pathlib import Path

from handler.spark.properties import read_properties

__all__ = ["shipped_settings"]


def shipped_settings() -> dict[str, str]:
    """Return the settings of image/spark/spark-defaults.conf."""
    return read_properties(Path(__file__).parents[2] / "image" / "spark" / "spark-defaults.conf")
