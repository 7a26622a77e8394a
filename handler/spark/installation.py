"""Where Java, PySpark and the files beside them are installed: in the image, or in a clone after `scripts/setup`."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from handler.input_errors import InputError

if TYPE_CHECKING:
    from handler.settings import HandlerSettings

__all__ = ["find_java", "find_pyspark", "pyspark_home", "spark_file"]

_REPOSITORY: Final = Path(__file__).resolve().parents[2]


def find_pyspark() -> Path | None:
    """Return pip's pyspark, which is a whole Spark, without importing it; None if it is not installed."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent


def pyspark_home() -> Path:
    """Return pip's pyspark, which is a whole Spark, without importing it."""
    home = find_pyspark()
    if home is None:
        raise InputError("pyspark", "is not installed beside the handler; run scripts/setup")
    return home


def find_java(settings: HandlerSettings) -> Path:
    """Return the java to run: `.soal/java` where set-up has made it, else JAVA_HOME, else the one on the path."""
    own = settings.soal_home / "java" / "bin" / "java"
    if own.exists():
        return own
    if settings.java_home is not None:
        return settings.java_home / "bin" / "java"
    on_path = shutil.which("java")
    if on_path is None:
        raise InputError("JAVA_HOME", "is not set and no java is on the path; install Java 17 or run scripts/setup")
    return Path(on_path)


def spark_file(settings: HandlerSettings, name: str) -> Path:
    """Return a file of image/spark: in the image below SOAL_HOME, else in the working tree."""
    baked = settings.soal_home / "spark" / name
    return baked if baked.exists() else _REPOSITORY / "image" / "spark" / name
