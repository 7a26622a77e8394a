"""Where the files of the image's sources are: in a clone beside this package, in an installation inside of it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_INSTALLED: Final = Path(__file__).with_name("function")
FUNCTION: Final = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[1]
"""The folder of `handler`, which the commands ask how the function reads an event or a setting, and of `image`."""
SPARK_DEFAULTS: Final = FUNCTION / "image" / "spark" / "spark-defaults.conf"
MISSING: Final = FUNCTION / "image" / "spark" / "missing.toml"
"""The table of what the image leaves out of PySpark (handler/spark/missing_dependencies.py)."""
