"""Set-up compiles the Java log store into a jar once, reproducibly, and again when an input changes."""

from __future__ import annotations

import os
import zipfile
from typing import TYPE_CHECKING

import pytest

from handler.spark.classpath import LITERAL
from scripts.provision.jars import LOG_STORE_JAR
from scripts.provision.java import Java
from scripts.provision.logstore import ensure_logstore, pack
from scripts.provision.place import Place
from soal.console.problem import Failure

if TYPE_CHECKING:
    from pathlib import Path

    from scripts.provision.java import Maven

# A fake compiler: writes a class file for each source, and fails on a source that says so.
COMPILER = """#!/bin/sh
while [ "$1" != -d ]; do shift; done
out=$2; shift 2; mkdir -p "$out/io"
for source; do
    if grep -q ERROR "$source"; then echo "$source:1: error"; exit 1; fi
    cp "$source" "$out/io/$(basename "$source" .java).class"
done
"""

# Makes a jar from another one, like our program: -X… -cp PATH MAIN JAR SOURCE.
PROGRAM = """#!/bin/sh
[ "$4" = io.soal.build.PatchedClasses ] && echo "made of $(basename "$6") $(basename "$7")" > "$5"
"""


def no_maven() -> Maven:
    pytest.fail("javac is there: Maven has nothing to do")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    for folder in ("image/jars", "requirements", ".soal/jars", ".venv/lib/python3.11/site-packages/pyspark/jars"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("image/jars/jars.sha256", "requirements/runtime.txt"):
        (tmp_path / file).touch()
    for jar in ("spark.jar", "spark-common-utils_2.13-4.1.4.jar", "hadoop-client-api-3.4.2.jar"):
        (tmp_path / ".venv/lib/python3.11/site-packages/pyspark/jars" / jar).touch()
    return place


@pytest.fixture
def java(tmp_path: Path) -> Java:
    (tmp_path / "java" / "bin").mkdir(parents=True)
    for name, text in (("javac", COMPILER), ("java", PROGRAM)):
        (tmp_path / "java" / "bin" / name).write_text(text)
        (tmp_path / "java" / "bin" / name).chmod(0o755)
    return Java(tmp_path / "java", "17.0.1")


def source(place: Place, name: str, text: str) -> Path:
    path = place.root / "image/logstore/src/main/java/io" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def members(place: Place) -> dict[str, bytes]:
    with zipfile.ZipFile(place.jars / LOG_STORE_JAR) as jar:
        return {name: jar.read(name) for name in jar.namelist() if not name.startswith("META-INF")}


def test_sources_become_a_jar_once(place: Place, java: Java) -> None:
    """The first run compiles, the second finds nothing to do."""
    source(place, "Store.java", "class Store {}")

    assert ensure_logstore(place, java, no_maven).changed
    assert members(place) == {"io/Store.class": b"class Store {}"}
    assert not ensure_logstore(place, java, no_maven).changed


@pytest.mark.parametrize("changed", ["image/logstore/src/main/java/io/Store.java", "image/jars/jars.sha256"])
def test_a_change_of_an_input_compiles_again(place: Place, java: Java, changed: str) -> None:
    """A changed source or class path is noticed by content, even with an old time stamp."""
    source(place, "Store.java", "class Store {}")
    ensure_logstore(place, java, no_maven)
    (place.root / changed).write_text("class Changed {}")
    os.utime(place.root / changed, (0, 0))

    assert ensure_logstore(place, java, no_maven).changed


@pytest.mark.parametrize("damaged", [LOG_STORE_JAR, LITERAL])
def test_a_damaged_jar_is_made_again(place: Place, java: Java, damaged: str) -> None:
    """A jar that differs from the last build is replaced."""
    source(place, "Store.java", "class Store {}")
    ensure_logstore(place, java, no_maven)
    (place.jars / damaged).write_bytes(b"")

    assert ensure_logstore(place, java, no_maven).changed
    assert members(place)
    assert (
        place.jars / LITERAL
    ).read_text() == "made of hadoop-client-api-3.4.2.jar spark-common-utils_2.13-4.1.4.jar\n"


def test_a_class_whose_source_is_gone_is_gone(place: Place, java: Java) -> None:
    """A deleted source leaves no stale class in the jar."""
    source(place, "Store.java", "class Store {}")
    source(place, "Old.java", "class Old {}").unlink()
    ensure_logstore(place, java, no_maven)

    assert list(members(place)) == ["io/Store.class"]


def test_a_failed_compilation_tells_the_compilers_words(place: Place, java: Java) -> None:
    """The error contains the compiler's output, and the next run tries again."""
    path = source(place, "Store.java", "ERROR")

    with pytest.raises(Failure, match=r"Store\.java:1: error"):
        ensure_logstore(place, java, no_maven)

    path.write_text("class Store {}")
    assert ensure_logstore(place, java, no_maven).changed


def test_a_jar_depends_on_its_contents_only(tmp_path: Path) -> None:
    """Two jars of the same classes are equal byte for byte, whatever the times and order."""
    one, two = tmp_path / "A.class", tmp_path / "B.class"
    one.write_bytes(b"1")
    two.write_bytes(b"2")
    pack({"A.class": one, "B.class": two}, tmp_path / "first.jar")
    os.utime(one, (0, 0))
    pack({"B.class": two, "A.class": one}, tmp_path / "second.jar")

    assert (tmp_path / "first.jar").read_bytes() == (tmp_path / "second.jar").read_bytes()
