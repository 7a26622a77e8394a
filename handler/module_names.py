"""Refuse Python files of a job that would hide modules which the job needs, or that hold native code.

The script's folder and the Python files come first on the job's import path: a `json.py` there is the `json` of Spark,
boto3 and the guard, too. Every other name is free, even `handler` and `scripts`.
"""

from __future__ import annotations

import re
import site
import sys
import zipfile
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Final

__all__ = ["NATIVE", "check_archive", "check_file", "stored_name"]

NATIVE: Final = (
    "native code, which Python cannot load from an archive; derive an image with the package (image/derived), or take a"
    " pure wheel (…-none-any.whl)"
)
"""Why a file is refused, and what to do."""
# Packages that a job needs; test_module_names.py compares both lists with the guard's imports.
_RESTED_ON: Final = {
    "safewriter": "the guard of writes",
    "pyspark": "Spark",
    "py4j": "Spark's way to Java",
    "delta": "Delta Lake's Python package",
    "boto3": "the guard's way to S3",
    "botocore": "the guard's way to S3",
    "pyiceberg": "the guard's way to Iceberg tables",
    "sitecustomize": "the site's own start of Python",
    "usercustomize": "the user's own start of Python",
}
_IN_SOME_IMAGES: Final = {
    "kazoo": "the way to locks in ZooKeeper",
    "cel_expr_python": "the hashing and routing of snapshot keys",
    "numpy": "the hashing and routing of snapshot keys",
    "pyarrow": "the writing of snapshot shards",
    "xxhash": "the hashing and routing of snapshot keys",
    "sqlalchemy": "the guard's way to Iceberg catalogs in a database",
}
"""A job may bring one of these if the image lacks it."""
_SUFFIXES: Final = (".py", ".pyc")
_PACKAGE_FILES: Final = ("__init__.py", "__init__.pyc")
_SIGNS: Final = re.compile(r"[#%?*,\[\]{}\\]")
_LIBRARY: Final = re.compile(r"\.(?:so(?:\.[0-9]+)*|pyd)\Z", re.IGNORECASE)


def check_file(name: str) -> None:
    """Raise `ValueError` if a file of this name, the last part of a path, would hide a module that the job needs."""
    if name.endswith(".py") and (hidden := _module_behind(name.removesuffix(".py"))) is not None:
        raise ValueError(f"{name} would hide {hidden}; rename the file, for example to my_{name}")


def stored_name(name: str) -> str:
    """Return the name of a Python file in the sandbox: Spark does not accept a .whl file as an archive, nor Python a
    .PY file as a module. `,` separates Spark's list of files, and other signs have a meaning in its paths.
    """
    stem, dot, suffix = name.rpartition(".")
    name = _SIGNS.sub("_", f"{stem}{dot}{suffix.lower()}")
    return f"{name}.zip" if name.endswith(".whl") else name


def check_archive(path: Path) -> None:
    """Raise `ValueError` if a zip or egg holds such a module at its top, or native code, or cannot be read.

    The message continues a sentence that begins with the file's name.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError) as error:
        raise ValueError(f"is no zip file that Python can read ({error}); make it again") from None
    for name in names:
        module = _top_module(name)
        if module is not None and (hidden := _module_behind(module)) is not None:
            raise ValueError(f"holds {name}, which would hide {hidden}; leave it out, or rename it if it is your own")
    if (library := next((name for name in names if _LIBRARY.search(name)), None)) is not None:
        raise ValueError(f"holds {library}: {NATIVE}; if the package works without this file, leave it out")


def _module_behind(module: str) -> str | None:
    """Describe the module that a module of this name would hide; None if it would hide none."""
    description = _RESTED_ON.get(module)
    if description is None and module in _IN_SOME_IMAGES and _is_in_image(module):
        description = _IN_SOME_IMAGES[module]
    if description is not None:
        return f"{module}, {description}, which the image has"
    return f"{module} of Python's standard library" if module in sys.stdlib_module_names else None


def _is_in_image(module: str) -> bool:
    """Return whether a job that does not bring a module would find it; does not import it.

    The handler's own path would not do: it has the handler's folder and the entries of PYTHONPATH, which a job's path
    lacks (handler/spark/environment.py).
    """
    return PathFinder.find_spec(module, _places_of_packages()) is not None


def _places_of_packages() -> list[str]:
    """Return the folders of packages on a job's path: PySpark's, and this Python's own."""
    spark = find_spec("pyspark")
    beside_spark = [] if spark is None or spark.origin is None else [str(Path(spark.origin).parents[1])]
    return [*beside_spark, *site.getsitepackages()]


def _top_module(name: str) -> str | None:
    """Return the top-level module or package that a file in an archive defines; None if it defines none.

    A folder without an `__init__` hides nothing: Python continues its search.
    """
    first, _, rest = name.partition("/")
    if rest:
        return first if rest in _PACKAGE_FILES else None
    return next((first.removesuffix(suffix) for suffix in _SUFFIXES if first.endswith(suffix)), None)
