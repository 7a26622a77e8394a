"""The places of the command line's files: those that scripts/setup has made, and those of a running local S3."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from handler.settings import soal_home
from handler.spark.missing_dependencies import SLIM
from scripts.image.homes import home_of, python_of
from scripts.provision.variant import is_complete
from scripts.soal.console.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from handler.spark.missing_dependencies import Variant

__all__ = ["JOBS", "ROOT", "SHARED_DATA", "Home"]

ROOT: Final = Path(__file__).resolve().parents[3]
JOBS: Final = ROOT / "scripts" / "jobs"
SHARED_DATA: Final = ROOT.parent / "shared" / "data" / "accommodations.csv"


@dataclass(frozen=True, slots=True)
class Home:
    """`SOAL_HOME`, else /opt/soal in the image, else `.soal` in a working tree."""

    path: Path

    @classmethod
    def of(cls, environ: Mapping[str, str] = os.environ) -> Home:
        """Find it from the environment."""
        named = environ.get("SOAL_HOME")
        return cls(Path(named) if named else soal_home())

    def of_variant(self, variant: Variant) -> Home:
        """Return the home that a function of this variant has on this machine. Raises `Problem` if set-up has not made
        it, or not to its end, or if it has lost something since.
        """
        found = Home(home_of(self.path, variant))
        if not found.python.is_file():
            problem = f"{found.path} has no packages of the image's variant {variant}"
        elif variant != SLIM and not is_complete(self.path):
            problem = f"{found.path}, the image's variant {variant}, is half-made or out of date"
        else:
            return found
        raise Problem(problem, todo=f"make it: scripts/setup --variant {variant}")

    @property
    def python(self) -> Path:
        """The Python with the packages of the image's variant, and no others."""
        return python_of(self.path)

    @property
    def jars(self) -> Path:
        return self.path / "jars"

    @property
    def rie(self) -> Path:
        return self.path / "rie"

    @property
    def state(self) -> Path:
        return self.path / "local.json"

    @property
    def lock(self) -> Path:
        return self.path / "local.lock"

    @property
    def log(self) -> Path:
        return self.path / "log" / "local.log"
