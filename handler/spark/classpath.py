"""The class path: a list of jars in a fixed order, since the class-data archive is tied to it.

A wildcard expands in the file system's order, and a directory on the class path rules an archive out. The JVM uses an
archive if the class path *begins* like the one it was made with; jars that may be changed or added later come last.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["LITERAL", "OWN", "added_jars", "archived_jars", "closures_jar", "jars"]

OWN: Final = "soal-"
"""The name prefix of SoAL's own jars."""
LITERAL: Final = "soal-literal.jar"
"""The classes of Hadoop and Spark that read settings, without the expansion of variables in values
(io.soal.build.PatchedClasses). They replace the originals, so they come first; `io.soal.host.Host` does not start
without them.
"""
_DIGITS: Final = 16


def jars(spark_home: Path, soal_home: Path) -> tuple[Path, ...]:
    """Return the whole class path."""
    return (*archived_jars(spark_home, soal_home), *added_jars(soal_home))


def archived_jars(spark_home: Path, soal_home: Path) -> tuple[Path, ...]:
    """Return the jars that the class-data archive is made from: PySpark's jars, and the listed ones beside them.

    The largest jars come first: for each class, the JVM (also in the training) searches the jars in order until one has
    it. Jars of equal size are sorted by name.

    Java archives no class of a signed jar, so unsigned copies (`SOAL_HOME/unsigned`) replace those. Nor does it archive
    Scala's lambda expressions: the classes with most of them come first, from a jar in which they are ordinary classes.
    """
    folders = (spark_home / "jars", soal_home / "jars", soal_home / "unsigned")
    by_name = {jar.name: jar for folder in folders for jar in folder.glob("*.jar") if not jar.name.startswith(OWN)}
    lowered = closures_jar(soal_home, by_name)
    by_size = sorted(by_name.values(), key=lambda jar: (-jar.stat().st_size, jar.name))
    first = (jar for jar in (soal_home / "jars" / LITERAL, lowered) if jar.is_file())
    return (*first, *by_size)


def closures_jar(soal_home: Path, names: Iterable[str]) -> Path:
    """Return the path of the jar with lambda expressions as classes, which may not exist.

    Its classes would hide those of other versions, so its name depends on the `names` of the jars behind it, except
    SoAL's own.
    """
    foreign = sorted(name for name in names if not name.startswith(OWN))
    digest = hashlib.sha256("\n".join(foreign).encode()).hexdigest()[:_DIGITS]
    return soal_home / "closures" / f"{digest}.jar"


def added_jars(soal_home: Path) -> tuple[Path, ...]:
    """Return SoAL's own jars and those that a derived image adds (`SOAL_HOME/extra`)."""
    own_jars = sorted(jar for jar in soal_home.joinpath("jars").glob(f"{OWN}*.jar") if jar.name != LITERAL)
    return (*own_jars, *sorted(soal_home.joinpath("extra").glob("*.jar")))
