"""Java's random generators after a start from a snapshot (io.soal.host.Generators)."""

from __future__ import annotations

import functools
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from handler.spark.classpath import archived_jars
from handler.spark.installation import find_pyspark
from handler.spark.jvm_options import MODULE_OPTIONS
from scripts.provision.java import ensure_java, find_maven
from scripts.provision.logstore import compile_java
from scripts.provision.place import ROOT, Place
from tests.logstore.jvm import SOURCES

if TYPE_CHECKING:
    from pathlib import Path

_PLACE = Place(ROOT)
_HOST = "io/soal/host"
_DRAWS = ROOT / "tests" / "logstore" / "java" / _HOST / "Draws.java"


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generators")
    java, _ = ensure_java(_PLACE, os.environ)
    maven = functools.cache(lambda: find_maven(java))
    compile_java(_PLACE, java, maven, [SOURCES / _HOST / "Generators.java", _DRAWS], folder)
    return folder


def draws(classes: Path, outside: str) -> dict[str, str]:
    spark_home = find_pyspark()
    assert spark_home is not None
    java, _ = ensure_java(_PLACE, os.environ)
    class_path = ":".join(str(path) for path in (classes, *archived_jars(spark_home, _PLACE.home)))
    command = [
        str(java.java),
        "-XX:TieredStopAtLevel=1",
        *MODULE_OPTIONS,
        "-cp",
        class_path,
        "io.soal.host.Draws",
        outside,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(line.split(" ") for line in done.stdout.splitlines())


def test_copies_of_a_jvm_draw_equal_values_only_if_they_are_given_equal_bytes(classes: Path) -> None:
    """The kernel gives all of these copies the same bytes. The second copy shows that nothing else tells them apart."""
    one, again, other = (draws(classes, outside) for outside in ("run-1", "run-1", "run-2"))
    assert one == again
    assert len(one) == 5
    assert [name for name in one if one[name] == other[name]] == []
