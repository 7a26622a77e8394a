"""Scala's lambdas as classes generated at build time (io.soal.build), equal to the JVM's own."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

from scripts.provision.place import ROOT, Place
from tests.logstore.jvm import SOURCES, compile_into, jars, java

if TYPE_CHECKING:
    from pathlib import Path

_PLACE = Place(ROOT)
_JAVA = ROOT / "tests" / "logstore" / "java" / "io" / "soal" / "build"
HOSTS = ("scala.Function1", "scala.Function2", "scala.NotThere", "java.util.Comparator", "io.soal.build.Lambda")


def original() -> list[Path]:
    return [jar for jar in jars() if jar.parent.name != "closures"]


def path(*places: Path) -> str:
    return ":".join(map(str, (*places, *original())))


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled tool and test program."""
    folder = tmp_path_factory.mktemp("closures")
    compile_into(folder, [*(SOURCES / "io" / "soal" / "build").glob("*.java"), *_JAVA.glob("*.java")])
    return folder


@pytest.fixture(scope="module")
def lowered(classes: Path) -> Path:
    """The jar that the tool makes for `HOSTS`."""
    jar, names, own = classes / "lowered.jar", classes / "hosts.txt", classes / "own.jar"
    with zipfile.ZipFile(own, "w") as made:
        made.write(classes / "io" / "soal" / "build" / "Lambda.class", "io/soal/build/Lambda.class")
    names.write_text("# a remark\n\n" + "".join(f"{host}\n" for host in HOSTS), encoding="utf-8")
    java("-cp", path(classes), "io.soal.build.Closures", jar, names, own, *original())
    return jar


def test_they_do_what_those_do_that_java_makes(classes: Path, lowered: Path) -> None:
    """Also after serialisation, with the same serialised form: only their kind differs."""
    theirs = java("-cp", path(classes), "io.soal.build.Lambda")
    ours = java("-cp", path(lowered, classes), "io.soal.build.Lambda")
    assert theirs.count("kind made by Java") == ours.count("kind made") == 4
    assert [line.replace("kind made by Java", "kind made") for line in theirs] == ours


def test_only_scalas_become_classes(lowered: Path) -> None:
    """Java's lambdas call private methods of their class; the tool skips classes that no jar has."""
    with zipfile.ZipFile(lowered) as jar:
        names = jar.namelist()
    assert {name.partition("$$")[0].removesuffix(".class") for name in names} == {"scala/Function1", "scala/Function2"}
    assert sum("$$Lambda$L" in name for name in names) == len(names) - 2


def test_java_verifies_each_of_them(classes: Path, lowered: Path) -> None:
    """The test's own classes, and those on the class path of this working tree."""
    made = [jar for jar in jars() if jar.parent.name == "closures"]
    for jar in (lowered, *made):
        with zipfile.ZipFile(jar) as entries:
            wanted = sum("$$Lambda$L" in name for name in entries.namelist())
        assert wanted > 0
        place = path(jar, classes, *_PLACE.jars.glob("soal-*.jar"))
        assert java("-cp", place, "io.soal.build.Lambda", jar) == [str(wanted)]


def test_an_equal_list_makes_an_equal_jar(classes: Path, lowered: Path) -> None:
    """The class-data archive is tied to the jar's bytes."""
    again = classes / "again.jar"
    java("-cp", path(classes), "io.soal.build.Closures", again, classes / "hosts.txt", *original())
    assert again.read_bytes() == lowered.read_bytes()
