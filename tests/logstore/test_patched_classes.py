"""The patched classes of Hadoop and Spark that do not substitute names in values (io.soal.build.PatchedClasses)."""

from __future__ import annotations

import os
import subprocess
import zipfile
from typing import TYPE_CHECKING

from handler.spark.classpath import LITERAL, OWN, archived_jars
from handler.spark.command import HOST
from handler.spark.installation import find_pyspark
from scripts.provision.java import ensure_java
from scripts.provision.place import ROOT, Place

if TYPE_CHECKING:
    from pathlib import Path

_PLACE = Place(ROOT)
_TIMEOUT_S = 250


def test_a_version_that_replaces_names_in_another_way_stops_the_build(tmp_path: Path) -> None:
    """Without the known methods the tool writes no jar, and its message says what to look for."""
    spark_home = find_pyspark()
    assert spark_home is not None
    java, _ = ensure_java(_PLACE, os.environ)
    jars = (*archived_jars(spark_home, _PLACE.home), *_PLACE.jars.glob(f"{OWN}*.jar"))
    other, made = tmp_path / "other.jar", tmp_path / "made.jar"
    with zipfile.ZipFile(_PLACE.jars / LITERAL) as literal, zipfile.ZipFile(other, "w") as changed:
        hadoop = next(name for name in literal.namelist() if name.endswith("/Configuration.class"))
        changed.writestr(hadoop, literal.read(hadoop))

    command = [java.java, "-XX:TieredStopAtLevel=1", "-cp", ":".join(map(str, jars)), "io.soal.build.PatchedClasses"]
    done = subprocess.run(
        [*map(str, command), str(made), str(other)], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )

    assert done.returncode == 1
    assert "ConfigReader.get" in done.stderr
    assert "find out how these versions replace ${...} in values" in done.stderr
    assert not made.exists()


def test_no_job_runs_where_values_are_not_literal() -> None:
    """Without our classes first on the class path, secrets could get into paths again."""
    spark_home = find_pyspark()
    assert spark_home is not None
    java, _ = ensure_java(_PLACE, os.environ)
    jars = [jar for jar in archived_jars(spark_home, _PLACE.home) if jar.name != LITERAL]
    behind = (*jars, *_PLACE.jars.glob(f"{OWN}*.jar"))

    command = [
        java.java,
        "-XX:TieredStopAtLevel=1",
        "-cp",
        ":".join(map(str, behind)),
        HOST,
        "job",
        "python",
        "program",
    ]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)

    assert done.returncode == 1
    assert "no job runs" in done.stderr
    assert "soal-literal.jar must come first" in done.stderr
