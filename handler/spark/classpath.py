"""The class path: jars only, one by one and in a fixed order, since the class-data archive is tied to it.

A wildcard expands in the file system's order, and a directory on the class path rules an archive out. Java takes an
archive if the class path *begins* as the one it was made with; jars that may be changed or added later come last.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["LITERAL", "OWN", "added_jars", "archived_jars", "jars", "lambdas_jar"]

OWN: Final = "soal-"
"""The prefix of the names of our own jars."""
LITERAL: Final = "soal-literal.jar"
"""The classes of Hadoop and Spark that read settings, without the replacement of names in values
(io.soal.archive.LiteralValues). They stand for the originals, so they come first; `io.soal.host.Host` does not start
without them.
"""
_DIGITS: Final = 16


def jars(spark_home: Path, soal_home: Path) -> tuple[Path, ...]:
    """Return the whole class path."""
    return (*archived_jars(spark_home, soal_home), *added_jars(soal_home))


def archived_jars(spark_home: Path, soal_home: Path) -> tuple[Path, ...]:
    """Return the jars that the class-data archive is made from: PySpark's jars, and the listed ones beside them.

    The largest jars come first: Java asks them in their order for each class, and so does the training, which looks at
    the files of all jars before the one that has the class. Of equal size, they are sorted by name.

    Java keeps no class of a signed jar in an archive, so unsigned copies (`SOAL_HOME/unsigned`) replace those. Nor does
    it keep Scala's lambda expressions: the classes with most of them come first, from a jar in which these are classes.
    """
    folders = (spark_home / "jars", soal_home / "jars", soal_home / "unsigned")
    by_name = {jar.name: jar for folder in folders for jar in folder.glob("*.jar") if not jar.name.startswith(OWN)}
    lowered = lambdas_jar(soal_home, by_name)
    by_size = sorted(by_name.values(), key=lambda jar: (-jar.stat().st_size, jar.name))
    first = (jar for jar in (soal_home / "jars" / LITERAL, lowered) if jar.is_file())
    return (*first, *by_size)


def lambdas_jar(soal_home: Path, names: Iterable[str]) -> Path:
    """Return where the jar with lambda expressions as classes is, if it was made.

    Its classes would hide those of other versions, so its own name is bound to the `names` of the jars behind it, but
    for our own.
    """
    foreign = sorted(name for name in names if not name.startswith(OWN))
    digest = hashlib.sha256("\n".join(foreign).encode()).hexdigest()[:_DIGITS]
    return soal_home / "lambdas" / f"{digest}.jar"


def added_jars(soal_home: Path) -> tuple[Path, ...]:
    """Return our own jars and those that a derived image adds (`SOAL_HOME/extra`)."""
    own_jars = sorted(jar for jar in soal_home.joinpath("jars").glob(f"{OWN}*.jar") if jar.name != LITERAL)
    return (*own_jars, *sorted(soal_home.joinpath("extra").glob("*.jar")))
