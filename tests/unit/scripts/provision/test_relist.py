"""`scripts/lock jars` refuses a jar that PySpark ships too, in any version, unless it replaces PySpark's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scripts.provision.place import Place
from scripts.provision.relist import _beside, shipped_twice

if TYPE_CHECKING:
    from pathlib import Path


def test_an_artifact_that_pyspark_ships_is_found_in_any_version() -> None:
    """A jar that PySpark ships in any version is named: two versions on one class path break at run time."""
    ours = ["jackson-core-2.13.0.jar", "s3-2.29.52.jar", "delta-spark_4.1_2.13-4.4.0.jar", "http-auth-2.29.52.jar"]
    theirs = ["jackson-core-2.20.0.jar", "jackson-2.20.0.jar", "http-auth-spi-1.jar", "s3-transfer-1.jar"]

    assert shipped_twice(ours, theirs) == ["jackson-core-2.13.0.jar"]


def test_a_jar_that_replaces_pyspark_s_is_no_second_version(tmp_path: Path) -> None:
    """A jar in image/jars/replaced.txt is no second version: PySpark's copy is not on the class path."""
    jars = tmp_path / ".venv" / "lib" / "python3.11" / "site-packages" / "pyspark" / "jars"
    jars.mkdir(parents=True)
    for name in ("jackson-core-2.21.2.jar", "jackson-annotations-2.21.jar"):
        (jars / name).touch()
    assert _beside(Place(tmp_path), "jars") == ["jackson-annotations-2.21.jar"]
