"""PySpark as pip installs it -> as the image has it: image/jars/dropped.toml says what goes, and why.

`python -m scripts.image.trim PYSPARK` in the Dockerfile. Only the standard library is imported here.
"""

from __future__ import annotations

import shutil
import sys
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["DROPPED", "Dropped", "is_of", "kept", "main", "read_dropped"]

DROPPED: Final = Path(__file__).resolve().parents[2] / "image" / "jars" / "dropped.toml"
# Launchers in shell, samples, and the copy of PySpark in a zip file: all of it is in the package itself, compiled.
_FOLDERS: Final = ("bin", "sbin", "data", "examples", "python", "jars/connect-repl")


@dataclass(frozen=True, slots=True)
class Dropped:
    """One thing that the image does not have; `instead` is what to do without it."""

    what: str
    jars: tuple[str, ...]
    classes: tuple[str, ...]
    instead: str


def read_dropped(path: Path = DROPPED) -> tuple[Dropped, ...]:
    """Read the list."""
    with path.open("rb") as file:
        rows = tomllib.load(file)["dropped"]
    return tuple(Dropped(row["what"], tuple(row["jars"]), tuple(row["classes"]), row["instead"]) for row in rows)


def kept(names: Iterable[str], dropped: Iterable[Dropped]) -> tuple[str, ...]:
    """Return those file names of jars that the image has."""
    patterns = [pattern for row in dropped for pattern in row.jars]
    return tuple(name for name in names if not any(is_of(name, pattern) for pattern in patterns))


def is_of(jar: str, pattern: str) -> bool:
    """Tell whether a file is a version of what the list names: `spark-sql` is `spark-sql_2.13-4.1.4.jar`."""
    return fnmatchcase(jar, f"{pattern}-[0-9]*.jar") or fnmatchcase(jar, f"{pattern}_2.*-[0-9]*.jar")


def main(pyspark: Path) -> int:
    """Trim the installed package and say what became of it."""
    jars = sorted(path.name for path in pyspark.glob("jars/*.jar"))
    stay = set(kept(jars, read_dropped()))
    size_mb = sum((pyspark / "jars" / name).stat().st_size for name in jars if name not in stay) / 1e6
    for name in jars:
        if name not in stay:
            (pyspark / "jars" / name).unlink()
    for folder in _FOLDERS:
        shutil.rmtree(pyspark / folder, ignore_errors=True)
    print(f"trim: {len(stay)} of {len(jars)} jars stay; {size_mb:.0f} MB dropped")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
