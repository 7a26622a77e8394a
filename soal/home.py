"""The home of the runtime on this machine: `.soal` in a clone, filled by scripts/setup; /opt/soal in the image.

Each variant of the image has a home with jars, a class-data archive, and a Python with exactly the image's packages:
`.soal` for slim, `.soal/full` for full.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from handler.spark.installation import default_home, find_pyspark
from handler.spark.missing_dependencies import SLIM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from handler.spark.missing_dependencies import Variant

_ENVIRONMENT: Final = "python"


@dataclass(frozen=True, slots=True)
class Home:
    """`SOAL_HOME`, else /opt/soal in the image, else `.soal` in a clone."""

    path: Path

    @classmethod
    def of(cls, environ: Mapping[str, str] = os.environ) -> Home:
        """Return the home that the environment names, or the default."""
        path = environ.get("SOAL_HOME")
        return cls(Path(path) if path else default_home())

    @property
    def python(self) -> Path:
        """The Python with exactly the packages of the image's variant."""
        return python_of(self.path)

    @property
    def jars(self) -> Path:
        return self.path / "jars"

    @property
    def rie(self) -> Path:
        return self.path / "rie"

    @property
    def state(self) -> Path:
        """The state file of the local S3; it exists while the local S3 runs."""
        return self.path / "local.json"

    @property
    def lock(self) -> Path:
        return self.path / "local.lock"

    @property
    def log(self) -> Path:
        return self.path / "log" / "local.log"


def home_of(soal: Path, variant: Variant) -> Path:
    """Return the home of a variant. `soal` is the home of slim."""
    return soal if variant == SLIM else soal / variant


def python_of(home: Path) -> Path:
    """Return the Python with the packages of a home's variant."""
    return home / _ENVIRONMENT / "bin" / "python"


def site_of(home: Path) -> Path | None:
    """Return the site-packages of a home's Python; None if there is none."""
    return next((home / _ENVIRONMENT).glob("lib/python3.*/site-packages"), None)


def pyspark_of(home: Path) -> Path | None:
    """Return the folder of PySpark for jobs of this home, independent of the calling Python; None if there is none.

    A home without its own Python is the image's: there PySpark belongs to the running Python.
    """
    site = site_of(home)
    return find_pyspark() if site is None else site / "pyspark"
