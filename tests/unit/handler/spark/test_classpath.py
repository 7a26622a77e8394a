"""The job's class path lists jars in a fixed order, on which the class-data archive depends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handler.spark.classpath import LITERAL, added_jars, archived_jars, closures_jar, jars
from handler.spark.installation import find_pyspark

if TYPE_CHECKING:
    from pathlib import Path


def touch(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_the_order_of_the_archived_jars_is_fixed(tmp_path: Path) -> None:
    """Other files in the folders do not matter: a directory or a wildcard would rule out the archive."""
    spark, home = tmp_path / "spark", tmp_path / "home"
    touch(spark / "jars/b.jar", spark / "jars/d.jar", home / "jars/a.jar", home / "jars/c.jar", home / "jars/c.txt")
    assert [jar.name for jar in archived_jars(spark, home)] == ["a.jar", "b.jar", "c.jar", "d.jar"]


def test_the_largest_jars_come_first(tmp_path: Path) -> None:
    """They have most of the classes, and the JVM searches the jars one after another."""
    touch(tmp_path / "jars/a.jar", tmp_path / "home/jars/b.jar", tmp_path / "jars/c.jar")
    (tmp_path / "home/jars/b.jar").write_text("many classes")
    (tmp_path / "jars/c.jar").write_text("a class")
    assert [jar.name for jar in archived_jars(tmp_path, tmp_path / "home")] == ["b.jar", "c.jar", "a.jar"]


def test_an_unsigned_copy_takes_the_place_of_its_original(tmp_path: Path) -> None:
    """It has the same position in the order."""
    touch(tmp_path / "jars/a.jar", tmp_path / "jars/b.jar", tmp_path / "home/unsigned/a.jar")
    found = archived_jars(tmp_path, tmp_path / "home")
    assert found == (tmp_path / "home/unsigned/a.jar", tmp_path / "jars/b.jar")


def test_the_classes_without_replacement_come_before_all_others(tmp_path: Path) -> None:
    """They even precede lambda expressions as classes, whose jar is not tied to them; SoAL's other jars come last."""
    home = tmp_path / "home"
    lowered = closures_jar(home, ["a.jar", LITERAL])
    assert lowered == closures_jar(home, ["a.jar"])
    touch(tmp_path / "jars/a.jar", home / "jars" / LITERAL, home / "jars/soal-logstore.jar", lowered)
    assert jars(tmp_path, home) == (
        home / "jars" / LITERAL,
        lowered,
        tmp_path / "jars/a.jar",
        home / "jars/soal-logstore.jar",
    )


def test_lambda_expressions_as_classes_come_first(tmp_path: Path) -> None:
    """This holds only for the very jars behind them: classes of an older version must not hide an update."""
    home = tmp_path / "home"
    touch(tmp_path / "jars/a-1.jar", home / "jars/b-1.jar")
    lowered = closures_jar(home, ["b-1.jar", "a-1.jar"])
    touch(lowered)
    assert archived_jars(tmp_path, home) == (lowered, tmp_path / "jars/a-1.jar", home / "jars/b-1.jar")
    (tmp_path / "jars/a-1.jar").rename(tmp_path / "jars/a-2.jar")
    assert archived_jars(tmp_path, home) == (tmp_path / "jars/a-2.jar", home / "jars/b-1.jar")


def test_what_may_change_comes_last(tmp_path: Path) -> None:
    """The log store and jars of a derived image do not change the part from which the archive is made."""
    home = tmp_path / "home"
    touch(tmp_path / "jars/z.jar", home / "jars/soal-logstore.jar", home / "extra/a-driver.jar")
    before = archived_jars(tmp_path, home)
    assert [jar.name for jar in jars(tmp_path, home)] == ["z.jar", "soal-logstore.jar", "a-driver.jar"]
    touch(home / "extra/b-driver.jar")
    assert archived_jars(tmp_path, home) == before
    assert len(added_jars(home)) == 3


def test_pyspark_is_found_where_it_is_installed() -> None:
    """It has the jars that it ships."""
    found = find_pyspark()
    assert found is not None
    assert list(found.glob("jars/spark-core_*.jar"))
