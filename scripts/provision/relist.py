"""Rewrite a list of checksums after a change of the pinned versions (for scripts/lock).

`jars`: image/jars/jars.sha256, from the jars to which image/jars/pom.xml resolves; `full-jars`, `local-jars`,
`rest-jars`, `derived`: the same in their folders; `rie`: requirements/rie.sha256, from its wheel.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from scripts.image.trim import is_of, replaced
from scripts.provision.jars import LISTS, read_sums, write_sums
from scripts.provision.java import ensure_java, find_maven
from scripts.provision.place import ROOT, Place
from scripts.provision.rie import extract_all
from scripts.provision.steps import say
from scripts.provision.wheel import downloaded_wheel
from soal.console.problem import Failure

if TYPE_CHECKING:
    from pathlib import Path


def main(name: str) -> int:
    """Write the list `name`; return the exit code."""
    place = Place(ROOT)
    try:
        path, count = _rie(place) if name == "rie" else _jars(place, name)
    except Failure as error:
        say(f"failed: {error.told}")
        return 1
    say(f"{count} files listed in {path}; review the difference before you commit it")
    return 0


def _jars(place: Place, name: str) -> tuple[Path, int]:
    folder = place.root / LISTS[name]
    java, _ = ensure_java(place, os.environ)
    with place.scratch() as scratch:
        find_maven(java).copy_closure(folder / "pom.xml", scratch)
        twice = shipped_twice([jar.name for jar in scratch.iterdir()], _beside(place, name))
        if twice:
            raise Failure(
                f"PySpark or image/jars has these too, perhaps in another version: {', '.join(twice)}",
                todo=f"exclude them in {folder / 'pom.xml'}",
            )
        return folder / "jars.sha256", write_sums(folder / "jars.sha256", scratch)


def _beside(place: Place, name: str) -> list[str]:
    """Return the other jars on a list's class path. The REST catalog has its own class path.

    The class path lacks PySpark's jars that image/jars/replaced.txt names.
    """
    if name == "rest-jars":
        return []
    pyspark = place.venv.glob("lib/python3.*/site-packages/pyspark/jars/*.jar")
    spark = [jar.name for jar in pyspark if not any(is_of(jar.name, pattern) for pattern in replaced())]
    return spark if name == "jars" else [*spark, *read_sums(place.root / LISTS["jars"] / "jars.sha256")]


def _rie(place: Place) -> tuple[Path, int]:
    path = place.requirements / "rie.sha256"
    with downloaded_wheel(place, "rie") as wheel, place.scratch() as scratch:
        extract_all(wheel, scratch)
        return path, write_sums(path, scratch)


def shipped_twice(names: list[str], pyspark_names: list[str]) -> list[str]:
    """Return the `names` whose artifact, in any version, is among `pyspark_names`."""
    artifacts = {_artifact(name) for name in pyspark_names}
    return sorted(name for name in names if _artifact(name) in artifacts)


def _artifact(jar: str) -> str:
    words = jar.removesuffix(".jar").split("-")
    version = next((index for index, word in enumerate(words) if index and word[:1].isdigit()), len(words))
    return "-".join(words[:version])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
