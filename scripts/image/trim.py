"""Trim pip's PySpark for the image. image/spark/missing.toml lists the parts to remove and why, image/jars/replaced.txt
the jars of which the image has newer versions.

The Dockerfile runs `python -m scripts.image.trim PYSPARK VARIANT`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

from handler.spark.missing_dependencies import Variant, read_missing
from soal.source_paths import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from handler.spark.missing_dependencies import Missing

_IMAGE: Final = Path(__file__).resolve().parents[2] / "image"
REPLACED: Final = _IMAGE / "jars" / "replaced.txt"
# Shell launchers, samples, PySpark's copy of itself as a zip file, and Spark Connect, whose jar missing.toml lists.
_FOLDERS: Final = ("bin", "sbin", "data", "examples", "python", "jars/connect-repl", "sql/connect")
# Modules that the image never imports: pyiceberg's command line, its Hive metastore client and its clients of other
# stores; pydantic's v1 interface; Powertools' router for HTTP events.
UNUSED: Final = (
    "aws_lambda_powertools/event_handler",
    "click",
    "fsspec",
    "hive_metastore",
    "markdown_it",
    "mdurl",
    "pydantic/v1",
    "pygments",
    "rich",
)
_RECORDS: Final = ("click", "fsspec", "markdown_it_py", "mdurl", "pygments", "rich")
# Examples for boto3's documentation; zstandard's cffi backend, for other Pythons.
_FILES: Final = ("botocore/data/**/examples-1.json*", "zstandard/_cffi*.so")
_OF_PACKAGES: Final = (
    *("numpy/**/tests", "pandas/tests", "pyarrow/tests", "pyarrow/include", "pyarrow/src", "numpy/_core/include"),
    *("numpy/f2py", "numpy/distutils", "sqlalchemy/testing", "pyarrow/*.px[di]", "pyarrow/*.pyx"),
    *("pyarrow/libarrow_python.so", "pyarrow/libarrow_python.so.*.*.*"),
    *("pyarrow/libarrow_flight.so*", "pyarrow/libarrow_python_flight.so*", "pyarrow/_flight*.so"),
)
"""Tests, sources and compilers in the packages of the variant full; copies of a library, with which wheels replace
links; Arrow Flight.
"""


def kept(names: Iterable[str], missing: Iterable[Missing]) -> tuple[str, ...]:
    """Return the file names of PySpark's jars that the image keeps."""
    patterns = [*replaced(), *(pattern for row in missing for pattern in row.jars)]
    return tuple(name for name in names if not any(is_of(name, pattern) for pattern in patterns))


def replaced() -> tuple[str, ...]:
    """Return the names of PySpark's jars of which the image has newer versions."""
    return tuple(line for line in REPLACED.read_text(encoding="utf-8").splitlines() if line and line[0] != "#")


def is_of(jar: str, pattern: str) -> bool:
    """Return whether a file is a version of a listed jar: `spark-sql_2.13-4.1.4.jar` is one of `spark-sql`."""
    return fnmatchcase(jar, f"{pattern}-[0-9]*.jar") or fnmatchcase(jar, f"{pattern}_2.*-[0-9]*.jar")


def superseded(python: Path) -> Iterator[Path]:
    """Yield the older API versions of services in botocore, which boto3 uses only if a caller names their date."""
    for service in python.glob("botocore/data/*"):
        yield from sorted(path for path in service.glob("*") if path.is_dir())[:-1]


@dataclass(frozen=True, slots=True)
class Trimmed:
    """The result: `jars` of `of` PySpark jars stay; the size of the dropped ones."""

    jars: int
    of: int
    dropped_mb: float


def trim(pyspark: Path, variant: Variant) -> Trimmed:
    """Trim an installed PySpark and the packages in its site-packages."""
    jars = sorted(path.name for path in pyspark.glob("jars/*.jar"))
    stay = set(kept(jars, read_missing(MISSING, variant)))
    size_mb = sum((pyspark / "jars" / name).stat().st_size for name in jars if name not in stay) / 1e6
    for name in jars:
        if name not in stay:
            (pyspark / "jars" / name).unlink()
    for folder in _FOLDERS:
        shutil.rmtree(pyspark / folder, ignore_errors=True)
    python = pyspark.parent
    records = [path for name in _RECORDS for path in python.glob(f"{name}-*.dist-info")]
    for path in (*(python / package for package in UNUSED), *records):
        shutil.rmtree(path, ignore_errors=True)
    for path in [path for pattern in (*_FILES, *_OF_PACKAGES) for path in python.glob(pattern)]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    for path in superseded(python):
        shutil.rmtree(path)
    return Trimmed(len(stay), len(jars), size_mb)


def main(arguments: Sequence[str] | None = None) -> int:
    """Trim the PySpark on the command line, and print the result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("pyspark", type=Path)
    parser.add_argument("variant", choices=get_args(Variant))
    options = parser.parse_args(arguments)
    trimmed = trim(options.pyspark, options.variant)
    print(f"trim: {trimmed.jars} of {trimmed.of} jars stay; {trimmed.dropped_mb:.0f} MB dropped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
