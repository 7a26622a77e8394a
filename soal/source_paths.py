"""Paths of the image's sources: beside this package in a clone, inside it in an installation."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_INSTALLED: Final = Path(__file__).with_name("function")
FUNCTION: Final = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[1]
"""The folder of `image`, and of `handler`, which the commands use to read events and settings."""
SPARK_DEFAULTS: Final = FUNCTION / "image" / "spark" / "spark-defaults.conf"
MISSING: Final = FUNCTION / "image" / "spark" / "missing.toml"
"""The table of the parts of PySpark that the image lacks (handler/spark/missing_dependencies.py)."""
