"""A copy of the working tree, in which tests run on changed code while the tree itself stays unchanged."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scripts.provision.jars import LOG_STORE_JAR
from scripts.provision.java import ensure_java, find_maven
from scripts.provision.logstore import ensure_logstore
from scripts.provision.place import ROOT, Place

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["compile_java", "copied"]

_OWN: Final = ("jars", "stamps", "spark.jsa")
"""Entries of `.soal` that a copy does not link: the class-data archive holds other paths, and is missing there."""


@contextmanager
def copied() -> Iterator[Path]:
    """Yield a copy of the files that git does not ignore; the packages and jars that set-up has fetched are links."""
    with tempfile.TemporaryDirectory(prefix="soal-mutant-") as folder:
        tree = Path(folder) / "tree"
        for name in _files():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name, follow_symlinks=False)
        (tree / ".venv").symlink_to(ROOT / ".venv")
        place, home = Place(tree), Place(ROOT).home
        place.jars.mkdir(parents=True)
        for found in (*home.iterdir(), *(home / "jars").iterdir()):
            if found.name not in _OWN:
                (place.home / found.relative_to(home)).symlink_to(found)
        yield tree


def compile_java(tree: Path) -> None:
    """Compile a copy's log store, for its Spark sessions. Raises `Failure`."""
    place = Place(tree)
    (place.jars / LOG_STORE_JAR).unlink(missing_ok=True)
    java, _ = ensure_java(place, os.environ)
    ensure_logstore(place, java, functools.cache(lambda: find_maven(java)))


def _files() -> list[str]:
    # Includes uncommitted files: the code under test may need them.
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in found.split("\0") if name and (ROOT / name).exists()]
