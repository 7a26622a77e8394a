"""Locate Java, PySpark and the files beside them, in the image or in a clone after `scripts/setup`."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Final

from handler.input_errors import InputError

__all__ = ["default_home", "find_java", "find_pyspark", "pyspark_home", "spark_file"]

_IMAGE_HOME: Final = Path("/opt/soal")
_REPOSITORY: Final = Path(__file__).resolve().parents[2]


def default_home() -> Path:
    """Return the folder of jars and Spark defaults if `SOAL_HOME` is not set: in the image, or in a clone."""
    return _IMAGE_HOME if _IMAGE_HOME.is_dir() else _REPOSITORY / ".soal"


def find_pyspark() -> Path | None:
    """Return pip's pyspark, which is a whole Spark, without importing it; None if it is not installed."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent


def pyspark_home() -> Path:
    """Return the folder of PySpark; `InputError` if it is not installed."""
    home = find_pyspark()
    if home is None:
        raise InputError("pyspark", "is not installed beside the handler; run scripts/setup")
    return home


def find_java(soal_home: Path, java_home: Path | None) -> Path:
    """Return the java to run: `.soal/java` if set-up made it, else JAVA_HOME's, else the one on the path."""
    java = soal_home / "java" / "bin" / "java"
    if java.exists():
        return java
    if java_home is not None:
        return java_home / "bin" / "java"
    on_path = shutil.which("java")
    if on_path is None:
        raise InputError("JAVA_HOME", "is not set and no java is on the path; install Java 17 or run scripts/setup")
    return Path(on_path)


def spark_file(soal_home: Path, name: str) -> Path:
    """Return a file of image/spark: in the image below SOAL_HOME, else in the working tree."""
    baked = soal_home / "spark" / name
    return baked if baked.exists() else _REPOSITORY / "image" / "spark" / name
