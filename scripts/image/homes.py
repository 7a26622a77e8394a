"""The image's variants in a working tree. Each has a home as the image has one (`SOAL_HOME`: jars, class-data archive),
and in it a Python of its own with the image's packages and no others: `.soal` is the slim one's, `.soal/full` the
other's. scripts/setup makes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from handler.spark.classpath import find_pyspark
from handler.spark.missing_dependencies import SLIM

if TYPE_CHECKING:
    from pathlib import Path

    from handler.spark.missing_dependencies import Variant

__all__ = ["home_of", "pyspark_of", "python_of", "site_of"]

_ENVIRONMENT: Final = "python"


def home_of(soal: Path, variant: Variant) -> Path:
    """Return the home of a variant; `soal`: that of the slim one."""
    return soal if variant == SLIM else soal / variant


def python_of(home: Path) -> Path:
    """Return the Python with the packages of a home's variant."""
    return home / _ENVIRONMENT / "bin" / "python"


def site_of(home: Path) -> Path | None:
    """Return the folder of these packages; None if there is none."""
    return next((home / _ENVIRONMENT).glob("lib/python3.*/site-packages"), None)


def pyspark_of(home: Path) -> Path | None:
    """Return the PySpark that a job of this home runs on, whichever Python asks; None if there is none.

    A home without a Python of its own is the image's: its PySpark stands beside the one that asks.
    """
    site = site_of(home)
    return find_pyspark() if site is None else site / "pyspark"
