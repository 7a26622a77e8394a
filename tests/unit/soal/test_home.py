"""The home of the runtime on this machine gives each image variant its folder, Python and PySpark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handler.spark.installation import find_pyspark
from soal.home import home_of, pyspark_of, python_of, site_of

if TYPE_CHECKING:
    from pathlib import Path


def test_each_variant_has_a_home_of_its_own(tmp_path: Path) -> None:
    """Each variant has its own home; that of slim is the working tree's."""
    assert home_of(tmp_path, "slim") == tmp_path
    assert home_of(tmp_path, "full") == tmp_path / "full"


def test_a_home_with_packages_has_a_pyspark_of_its_own(tmp_path: Path) -> None:
    """A home with packages has its own PySpark, whatever Python runs."""
    site = tmp_path / "python" / "lib" / "python3.12" / "site-packages"
    site.mkdir(parents=True)
    assert site_of(tmp_path) == site
    assert pyspark_of(tmp_path) == site / "pyspark"
    assert python_of(tmp_path) == tmp_path / "python" / "bin" / "python"


def test_the_image_has_one_beside_its_python(tmp_path: Path) -> None:
    """In the image, PySpark belongs to the running Python, since the home contains no other one."""
    assert site_of(tmp_path) is None
    assert pyspark_of(tmp_path) == find_pyspark()
